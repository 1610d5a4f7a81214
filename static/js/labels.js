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

const isLong = (token) => Array.from(labelText(token)).length > LONGEST;

/** [{text, quiet}] of the label, no longer than a tick has room for: what is cut off has an ellipsis in its place. */
function cutParts(token) {
  const parts = labelParts(token).map((part) => ({ ...part, characters: Array.from(part.text) }));
  const long = isLong(token);
  let room = long ? LONGEST - 1 : LONGEST;
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
  return tokens.filter(isLong).some((token) => {
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
export function tickText(token, quietColour, position = null) {
  const quiet = (text) => `<span style="color:${quietColour}">${text}</span>`;
  const words = cutParts(token).map((part) => (part.quiet ? quiet(escapePlotly(part.text)) : escapePlotly(part.text)));
  return `${position === null ? '' : quiet(`${position} `)}${words.join('')}`;
}

/** How many letters wide the tick text is; East Asian characters and emoji count twice. */
export function labelWidth(token) {
  let width = 0;
  for (const character of labelText(token)) width += character.codePointAt(0) > 0x2e7f ? 2 : 1;
  return Math.min(width, LONGEST);
}
