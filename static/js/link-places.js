/**
 * Which characters a marked link is of, and which tokens of another run cover them. A link then has
 * {run, origin, here, apart, lost}: the run that its indices are of, what it was marked on, what it names in that run
 * (both {query, key}), whether that is of another text, and whether no token there covers its characters. Offsets count
 * code points. Pure.
 */

const known = new WeakMap(); // tokens → their letters, by segment
const compared = new WeakMap(); // letters → other letters → whether they agree
const segmentOf = (token) => token.segment ?? 0;

/** The letters that the tokens of one text cover, each at its place. */
function lettersOf(tokens, segment) {
  if (!known.has(tokens)) known.set(tokens, []);
  const found = known.get(tokens);
  if (!found[segment]) {
    found[segment] = [];
    for (const token of tokens) {
      if (token.special || segmentOf(token) !== segment) continue;
      Array.from(token.text).forEach((letter, at) => {
        found[segment][token.start + at] = letter;
      });
    }
  }
  return found[segment];
}

/** {letters, length} of one text of a run. What no token covers is blank, or was cut away. */
function textOf(summary, side, segment) {
  const letters = lettersOf(summary.tokens[side], segment);
  const end = letters.findLastIndex((letter) => letter?.trim()) + 1;
  return { letters, length: side === 'source' && segment === 0 ? summary.text.characters : end };
}

/** Whether two texts have the same letters wherever tokens of both cover them; asked once for all links. */
function agree(one, other) {
  if (!compared.has(one)) compared.set(one, new WeakMap());
  const found = compared.get(one);
  if (!found.has(other)) {
    const both = Object.keys(one).filter((at) => other[at] !== undefined);
    found.set(other, both.length > 0 && both.every((at) => one[at] === other[at]));
  }
  return found.get(other);
}

const isSame = (one, other) => one.length === other.length && agree(one.letters, other.letters);

/** One end of a span: its token's characters without the blanks round them; of a special token which one of all it is. */
function endOf(tokens, index) {
  const token = tokens[index];
  const { start, end, part, parts } = token;
  if (token.special) {
    const number = tokens.slice(0, index).filter(({ special }) => special).length;
    return { special: true, number, first: index === 0, last: index === tokens.length - 1 };
  }
  const own = Array.from(token.text);
  const blank = token.text.trim() === '';
  const before = blank ? 0 : own.findIndex((letter) => letter.trim());
  const after = blank ? 0 : own.length - 1 - own.findLastIndex((letter) => letter.trim());
  return { special: false, segment: segmentOf(token), from: start + before, to: end - after, start, end, part, parts };
}

/** What a span of a run's side names; null where the run has no such tokens. */
function anchorOf(summary, side, span) {
  const tokens = summary.tokens[side];
  if (span[1] >= tokens.length) return null;
  const ends = span.map((index) => endOf(tokens, index));
  const segments = ends.filter(({ special }) => !special).map(({ segment }) => segment);
  const texts = Object.fromEntries(segments.map((segment) => [segment, textOf(summary, side, segment)]));
  return { side, span, ends, texts, names: span.map((index) => tokens[index]) };
}

/** Both sides of a link; `sides` as sidesKey writes them. */
function anchorsOf(summary, sides, { query, key }) {
  const [rows, cols] = sides.split('>');
  return { query: anchorOf(summary, rows, query), key: anchorOf(summary, cols, key) };
}

/** Whether the run has the text, or both, that the anchor is of; special tokens are of none. */
const isOf = (summary, { side, texts }) =>
  Object.entries(texts).every(([segment, text]) => isSame(text, textOf(summary, side, Number(segment))));

const sameToken = (token, end) => Boolean(token) && !token.special && !end.special
  && segmentOf(token) === end.segment && ['start', 'end', 'part', 'parts'].every((name) => token[name] === end[name]);

/** The tokens that stand for one end of a span: [first, last], -1 where there are none. */
function tokensFor(tokens, end) {
  if (!end.special) {
    const covers = (token) =>
      !token.special && segmentOf(token) === end.segment && token.start < end.to && token.end > end.from;
    return [tokens.findIndex(covers), tokens.findLastIndex(covers)];
  }
  const all = tokens.filter(({ special }) => special);
  const [first, last] = [tokens[0], tokens.at(-1)];
  const token = end.first ? first : end.last ? last : all[end.number];
  const index = token?.special ? tokens.indexOf(token) : -1;
  return [index, index];
}

/** The tokens of this run that cover what the anchor names; null where there are none. */
function spanOf(summary, { side, span, ends }) {
  const tokens = summary.tokens[side];
  if (ends.every((end, at) => sameToken(tokens[span[at]], end))) return span; // pieces of a character too
  const first = tokensFor(tokens, ends[0])[0];
  const last = tokensFor(tokens, ends[1])[1];
  return first < 0 || last < first ? null : [first, last];
}

/** One side in another run: by the characters it was marked on, else by those it names now, else by its indices. */
function moved(summary, origin, here, span) {
  const anchor = [origin, here].find((one) => one && isOf(summary, one));
  if (!anchor) return { span, apart: origin !== null };
  return { span: spanOf(summary, anchor), apart: anchor !== origin };
}

const NOWHERE = { query: null, key: null };

/** The link in this run, on its own tokens there. One that knows no characters yet takes those of its indices here. */
export function settled(summary, sides, link) {
  if (link.run === summary.id) return link;
  const { origin = NOWHERE, here = NOWHERE } = link;
  const query = moved(summary, origin.query, here.query, link.query);
  const key = moved(summary, origin.key, here.key, link.key);
  const lost = query.span === null || key.span === null;
  const next = lost ? link : { query: query.span, key: key.span };
  const now = lost ? here : anchorsOf(summary, sides, next);
  return {
    query: next.query, key: next.key, run: summary.id, lost, apart: query.apart || key.apart, here: now,
    origin: { query: origin.query ?? now.query, key: origin.key ?? now.key },
  };
}
