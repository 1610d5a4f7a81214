/** How a token is written: its own text, with spaces and line ends made visible but quiet. Never makes markup of it. */

const VISIBLE = { ' ': '·', '\n': '↵', '\r': '␍', '\t': '⇥', '\u00a0': '⍽', '\u3000': '□' };
const LONGEST = 14;

/** [{text, quiet}]: the token cut into its own text and the marks that stand for spaces and line ends. */
export function labelParts(token) {
  const parts = [];
  for (const character of token.text) {
    const quiet = character in VISIBLE;
    const shown = quiet ? VISIBLE[character] : character;
    const last = parts.at(-1);
    if (last && last.quiet === quiet) last.text += shown;
    else parts.push({ text: shown, quiet });
  }
  if (token.parts > 1) parts.push({ text: ` ${token.part}/${token.parts}`, quiet: true });
  return parts.length ? parts : [{ text: '∅', quiet: true }];
}

/** The label as plain text. */
export const labelText = (token) => labelParts(token).map((part) => part.text).join('');

const escapePlotly = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const isLong = (token, longest = LONGEST) => Array.from(labelText(token)).length > longest;

/** [{text, quiet}] of the label, no longer than a tick has room for: what is cut off has an ellipsis in its place. */
function cutParts(token, longest = LONGEST) {
  const parts = labelParts(token).map((part) => ({ ...part, characters: Array.from(part.text) }));
  const long = isLong(token, longest);
  let room = long ? longest - 1 : longest;
  const kept = parts.map(({ quiet, characters }) => {
    const text = characters.slice(0, room).join('');
    room -= Math.min(room, characters.length);
    return { text, quiet };
  }).filter(({ text }) => text);
  return long ? [...kept, { text: '…', quiet: false }] : kept;
}

/** Whether two different ticks would say the same though neither says all: then only their numbers tell them apart. */
export function cutAlike(tokens) {
  const seen = new Set();
  return tokens.filter((token) => isLong(token)).some((token) => {
    const text = cutParts(token).map((part) => part.text).join('');
    const again = seen.has(text);
    seen.add(text);
    return again;
  });
}

/**
 * The label as Plotly tick text: escaped, so that it is drawn verbatim, and cut when long. A dollar sign is safe since
 * no MathJax is loaded. A `position` is written before it where labels alone do not tell which token it is.
 */
export function tickText(token, quietColour, position = null, longest = LONGEST) {
  const quiet = (text) => `<span style="color:${quietColour}">${text}</span>`;
  const words = cutParts(token, longest).map((part) => (part.quiet ? quiet(escapePlotly(part.text)) : escapePlotly(part.text)));
  return `${position === null ? '' : quiet(`${position} `)}${words.join('')}`;
}

/** The same as it is seen: without markup, to be measured. */
export const tickWords = (token, position = null, longest = LONGEST) =>
  `${position === null ? '' : `${position} `}${cutParts(token, longest).map((part) => part.text).join('')}`;

/** The most characters, up to the usual, with which a tick is no wider than `room`; `width` measures. At least one and the ellipsis. */
export function longestThatFits(token, position, room, width) {
  let longest = LONGEST;
  while (longest > 2 && width(tickWords(token, position, longest)) > room) longest -= 1;
  return longest;
}
