/** Where each head's thumbnail lies in the overview. Pure geometry in CSS pixels. */

const SMALLEST = 16;
const LARGEST = 96;
const GAP = 2;
const LEFT = 26; // layer numbers
const TOP = 16; // head numbers
const REACH = 58; // bar of the mean distance
const REACH_GAP = 10;

const EXTREME = 2.5; // how much longer than wide, or wider than long, a thumbnail may be

/** Height over width of a thumbnail of so many cells; a long, thin matrix is drawn less so. */
export const aspectOf = (rows, cols) => Math.min(EXTREME, Math.max(1 / EXTREME, rows / cols));

const clampSize = (width, aspect) => Math.min(LARGEST / Math.max(1, aspect), Math.max(SMALLEST, Math.floor(width)));

const widthFor = (heads, thumb, reach) => LEFT + heads * (thumb + GAP) + (reach ? REACH_GAP + REACH : 0);

/** The width of a thumbnail that is as high as this height allows. */
const widthAt = (height, layers, aspect) => ((height - TOP) / layers - GAP) / aspect;

/** The width at which thumbnails are as large as this height allows. */
export function wishedWidth({ layers, heads, height, reach, aspect = 1 }) {
  return widthFor(heads, clampSize(widthAt(height, layers, aspect), aspect), reach);
}

/** Thumbnails as large as width and height allow, with the places of everything. */
export function layoutOverview({ layers, heads, width, height, reach, aspect = 1 }) {
  const across = (width - LEFT - (reach ? REACH_GAP + REACH : 0)) / heads - GAP;
  const wide = Math.round(clampSize(Math.min(widthAt(height, layers, aspect), across), aspect));
  const high = Math.round(wide * aspect);
  return {
    layers, heads, thumb: { width: wide, height: high }, pitch: { x: wide + GAP, y: high + GAP }, left: LEFT, top: TOP,
    reachLeft: LEFT + heads * (wide + GAP) + REACH_GAP, reachWidth: reach ? REACH : 0,
    width: widthFor(heads, wide, reach), height: TOP + layers * (high + GAP),
  };
}

/** The height that a screen with the head under the overview gives it. */
export const narrowHeight = (layers, screen) => Math.max(screen * 0.7, TOP + Math.min(layers, 32) * 28);

/** The head at a point, or null. */
export function headAt(layout, x, y) {
  const layer = Math.floor((y - layout.top) / layout.pitch.y);
  const head = Math.floor((x - layout.left) / layout.pitch.x);
  const inside = layer >= 0 && layer < layout.layers && head >= 0 && head < layout.heads;
  return inside ? { layer, head } : null;
}

/** The layer whose reach bar is at a point, or null. */
export function reachAt(layout, x, y) {
  const layer = Math.floor((y - layout.top) / layout.pitch.y);
  return x >= layout.reachLeft && layer >= 0 && layer < layout.layers ? layer : null;
}

/** The rectangle of a head; of a whole row, column or everything where layer or head is an aggregate. */
export function boxOf(layout, { layer, head }) {
  const down = Number.isInteger(layer) ? [layer, 1] : [0, layout.layers];
  const across = Number.isInteger(head) ? [head, 1] : [0, layout.heads];
  return {
    x: layout.left + across[0] * layout.pitch.x, y: layout.top + down[0] * layout.pitch.y,
    width: across[1] * layout.pitch.x - GAP, height: down[1] * layout.pitch.y - GAP,
  };
}
