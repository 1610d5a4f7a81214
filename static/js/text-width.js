/** How wide a short text is on the screen, in the page's font. Measures on a canvas of its own; draws nothing. */

const KEPT = 20000; // widths

const known = new Map(); // font|text → px
let context = null;
let family = null;

/** The width in CSS pixels of a text of this size, of plain weight. */
export function textWidth(text, size) {
  context ??= new OffscreenCanvas(1, 1).getContext('2d');
  family ??= getComputedStyle(document.body).fontFamily;
  const key = `${size}|${text}`;
  if (!known.has(key)) {
    if (known.size >= KEPT) known.clear();
    context.font = `${size}px ${family}`;
    known.set(key, context.measureText(text).width);
  }
  return known.get(key);
}
