/** Signs for characters that nobody could see, or that would turn or join the text around them. Pure; knows no tokens. */

const SPACES = new Set([' ', '\u00a0', '\u3000']); // these have marks of their own
// In no class of Unicode's: an empty braille pattern and an empty note head.
const EMPTY = new Set(['\u2800', '\u{1d159}']);
const UNSEEN = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\p{Co}\p{Cs}\p{Cn}\p{Default_Ignorable_Code_Point}]$/u;
// Format characters that are drawn: Arabic, Syriac and Kaithi signs over or under a number.
const DRAWN = /^[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]$/u;
const JOINER = /^[\u200c\u200d]$/;
const SELECTOR = /^[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]$/u;
const TAG = /^[\u{e0020}-\u{e007f}]$/u;
const FLAGGED = /\u{1f3f4}[\u{e0020}-\u{e007f}]*$/u;
const LONGEST_FLAG = 8; // code points of a flag made of tags: one flag, five letters, one end; one to spare
const PICTURE = /^[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]$/u;
const SELECTABLE = /^[\p{Emoji}\p{Ideographic}\p{Script=Mongolian}\p{Script=Myanmar}\p{Sm}]$/u;
// Scripts whose letters take another form before or after a joiner, which is thereby seen.
const SHAPED = new RegExp(`^[${['Arabic', 'Syriac', 'Mongolian', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil',
  'Telugu', 'Kannada', 'Malayalam', 'Sinhala', 'Khmer', 'Myanmar'].map((name) => `\\p{Script=${name}}`).join('')}]$`, 'u');

const FIRST_STRONG_ISOLATE = '\u2068';
const POP_ISOLATE = '\u2069';
const ROUND = '\u25cc'; // a ring on which a mark without its letter sits

const hex = (character) => character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');

/** Whether a character that is not drawn itself is seen by what it does to its neighbours: it joins an emoji, or letters. */
function isSeen(characters, at) {
  const character = characters[at];
  const before = characters[at - 1] ?? '';
  const after = characters[at + 1] ?? '';
  if (JOINER.test(character)) {
    return [PICTURE, SHAPED].some((kind) => kind.test(before) && kind.test(after)) && !(character === '\u200c' && PICTURE.test(before));
  }
  if (SELECTOR.test(character)) return SELECTABLE.test(before);
  if (TAG.test(character)) return characters.slice(Math.max(0, at - LONGEST_FLAG), at).join('').match(FLAGGED) !== null;
  return false;
}

/** The sign for one of these characters, with its code point; null where it is seen as it is. */
export function signOf(characters, at) {
  const character = characters[at];
  if (SPACES.has(character) || DRAWN.test(character)) return null;
  if (!UNSEEN.test(character) && !EMPTY.has(character)) return null;
  return isSeen(characters, at) ? null : `⟨U+${hex(character)}⟩`;
}

/** What a text that begins with a combining mark is put on, so that the mark does not sit on what stands before it. */
export const seatOf = (text) => (/^\p{M}/u.test(text) && !UNSEEN.test(Array.from(text)[0]) ? ROUND : '');

/** A label inside other text: it turns none of it, whatever way it runs. */
export const isolated = (text) => `${FIRST_STRONG_ISOLATE}${text}${POP_ISOLATE}`;
