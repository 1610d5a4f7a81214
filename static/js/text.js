/** The user's text put together from tokens, and the gaps between tokens. Offsets count code points. Pure. */

/** The run's whole text, when its tokens cover all of it but single spaces; null otherwise. */
export function textOfTokens(summary) {
  const { characters, cut } = summary.text;
  if (cut) return null;
  let end = 0;
  let text = '';
  for (const token of summary.tokens.source) {
    if (token.special || token.end <= end) continue;
    if (token.start > end + 1 || (token.start === end + 1 && end === 0)) return null;
    if (token.start === end + 1) text += ' ';
    text += Array.from(token.text).slice(Math.max(0, end - token.start)).join('');
    end = token.end;
  }
  return end === characters ? text : null;
}

/**
 * Tokens grouped for the strip: [{gap, tokens}] where `gap` is the text between this group and the one before, and
 * `tokens` has more than one entry only for pieces of one character. Without the text a gap is one space.
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
