/** How a token is written: its own text, with spaces, line ends and what is not seen made visible but quiet. Never makes markup of it. */

import { isolated, seatOf, signOf } from './signs.js';

const VISIBLE = { ' ': '·', '\n': '↵', '\r': '␍', '\t': '⇥', '\u00a0': '⍽', '\u3000': '□' };
const LONGEST = 14;

/** [{text, quiet, sign}]: the token cut into its own text and the marks that stand for spaces, line ends and the unseen; a sign is one of these that has to stay whole. */
export function labelParts(token) {
  const parts = [];
  const add = (text, quiet, sign = false) => {
    const last = parts.at(-1);
    if (last && last.quiet === quiet && !last.sign && !sign) last.text += text;
    else parts.push({ text, quiet, sign });
  };
  if (seatOf(token.text)) add(seatOf(token.text), false);
  Array.from(token.text).forEach((character, at, characters) => {
    const sign = VISIBLE[character] ? null : signOf(characters, at);
    add(sign ?? VISIBLE[character] ?? character, sign !== null || character in VISIBLE, sign !== null);
  });
  if (token.parts > 1) parts.push({ text: ` ${token.part}/${token.parts}`, quiet: true });
  return parts.length ? parts : [{ text: '∅', quiet: true }];
}

const plainText = (token) => labelParts(token).map((part) => part.text).join('');

/** The label as plain text, to be put into a sentence or a title. */
export const labelText = (token) => isolated(plainText(token));

/** A text of the user's as plain text in one line: spaces stay, what is not seen has its sign, and it turns nothing around it. */
export const shownText = (text) => isolated(Array.from(text).map((character, at, all) => signOf(all, at) ?? character).join(''));

const escapePlotly = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const isLong = (token, longest = LONGEST) => Array.from(plainText(token)).length > longest;

/** [{text, quiet}] of the label, no longer than a tick has room for: what is cut off has an ellipsis in its place. */
function cutParts(token, longest = LONGEST) {
  const parts = labelParts(token).map((part) => ({ ...part, characters: Array.from(part.text) }));
  const long = isLong(token, longest);
  let room = long ? longest - 1 : longest;
  const kept = parts.map(({ quiet, sign, characters }) => {
    const text = sign && characters.length > room ? '' : characters.slice(0, room).join('');
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
  return `${position === null ? '' : quiet(`${position} `)}${isolated(words.join(''))}`;
}

/** The same as it is seen: without markup and what has no width, to be measured. */
export const tickWords = (token, position = null, longest = LONGEST) =>
  `${position === null ? '' : `${position} `}${cutParts(token, longest).map((part) => part.text).join('')}`;

/** The most characters, up to the usual, with which a tick is no wider than `room`; `width` measures. At least one and the ellipsis. */
export function longestThatFits(token, position, room, width) {
  let longest = LONGEST;
  while (longest > 2 && width(tickWords(token, position, longest)) > room) longest -= 1;
  return longest;
}
