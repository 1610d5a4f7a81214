/** The user's texts put together from tokens, and the gaps between tokens. Offsets count code points. Pure. */

const cutFromPair = (token) => token.segment === 1;

/** {text, end}: what these tokens cover from the start, single spaces between them allowed; null where more is missing. */
function join(tokens) {
  let end = 0;
  let text = '';
  for (const token of tokens) {
    if (token.special || token.end <= end) continue;
    if (token.start > end + 1 || (token.start === end + 1 && end === 0)) return null;
    if (token.start === end + 1) text += ' ';
    text += Array.from(token.text).slice(Math.max(0, end - token.start)).join('');
    end = token.end;
  }
  return { text, end };
}

/** The run's whole text, when its tokens cover all of it but single spaces; null otherwise. */
export function textOfTokens(summary) {
  const { characters, cut } = summary.text;
  const joined = cut ? null : join(summary.tokens.source.filter((token) => !cutFromPair(token)));
  return joined?.end === characters ? joined.text : null;
}

/** The run's second text as its tokens have it: '' where there is none, null where more than single spaces is missing. */
export function pairOfTokens(summary) {
  if (!summary.options.pair) return '';
  return summary.text.cut ? null : join(summary.tokens.source.filter(cutFromPair))?.text ?? null;
}

/** The target text that was given with the run; '' where the model wrote its own, or takes none. */
export function targetOfTokens(summary) {
  return summary.options.target === 'given' ? join(summary.tokens.target)?.text ?? null : '';
}

/**
 * Tokens of one text grouped for the strip: [{gap, tokens}] where `gap` is the text between this group and the one before,
 * and `tokens` has more than one entry only for pieces of one character. Without the text a gap is one space.
 */
export function groupTokens(tokens, text) {
  const points = text === null ? null : Array.from(text);
  const groups = [];
  let end = tokens.find((token) => !token.special)?.start ?? 0;
  if (points && end > 0) groups.push({ gap: points.slice(0, end).join(''), tokens: [] });
  for (const token of tokens) {
    const last = groups.at(-1);
    const sameCharacter = token.parts > 1 && token.part > 1 && last?.tokens.length;
    if (sameCharacter) {
      last.tokens.push(token);
    } else {
      const gap = !token.special && token.start > end ? (points?.slice(end, token.start).join('') ?? ' ') : '';
      groups.push({ gap, tokens: [token] });
    }
    if (!token.special) end = Math.max(end, token.end);
  }
  return groups;
}

/** Tokens cut where the second text of a pair begins: [first] or [first, second]. The model's own tokens cut nothing. */
export function segmentsOf(tokens) {
  const second = tokens.findIndex((token) => cutFromPair(token) && !token.special);
  return second < 0 ? [tokens] : [tokens.slice(0, second), tokens.slice(second)];
}
