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

/**
 * The label as Plotly tick text: escaped, so that it is drawn verbatim, and cut when long. A dollar sign is safe since
 * no MathJax is loaded. A `position` is written before it where not every token has a label.
 */
export function tickText(token, quietColour, position = null) {
  let room = LONGEST;
  let out = position === null ? '' : `<span style="color:${quietColour}">${position} </span>`;
  for (const part of labelParts(token)) {
    const characters = Array.from(part.text);
    const cut = characters.length > room ? `${characters.slice(0, room - 1).join('')}…` : part.text;
    out += part.quiet ? `<span style="color:${quietColour}">${escapePlotly(cut)}</span>` : escapePlotly(cut);
    room -= Math.min(room, characters.length);
    if (room === 0) break;
  }
  return out;
}

/** How many letters wide the tick text is; East Asian characters and emoji count twice. */
export function labelWidth(token) {
  let width = 0;
  for (const character of labelText(token)) width += character.codePointAt(0) > 0x2e7f ? 2 : 1;
  return Math.min(width, LONGEST);
}
