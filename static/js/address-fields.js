/** The parts of an address's fragment that pages share: ranges, and layers and heads. Pure. */

/** A half-open range as 3:8; null for none. */
export const spanText = (range) => (range ? range.join(':') : null);

/** The range in such a text; null where it is none. */
export function readSpan(text) {
  const match = /^(\d+):(\d+)$/.exec(text ?? '');
  return match && Number(match[1]) < Number(match[2]) ? [Number(match[1]), Number(match[2])] : null;
}

/** A layer or head: its number, 'mean' or 'max'; null where the text is neither. */
export function readIndex(text) {
  if (text === 'mean' || text === 'max') return text;
  return /^\d+$/.test(text ?? '') ? Number(text) : null;
}
