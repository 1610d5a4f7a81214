/** Where each head's thumbnail lies in the overview. Pure geometry in CSS pixels. */

const SMALLEST = 16;
const LARGEST = 64;
const GAP = 2;
const LEFT = 26; // layer numbers
const TOP = 16; // head numbers
const REACH = 58; // bar of the mean distance
const REACH_GAP = 10;

const clampSize = (size) => Math.min(LARGEST, Math.max(SMALLEST, Math.floor(size)));

const widthFor = (heads, thumb, reach) => LEFT + heads * (thumb + GAP) + (reach ? REACH_GAP + REACH : 0);

/** The width at which thumbnails are as large as this height allows. */
export function wishedWidth({ layers, heads, height, reach }) {
  return widthFor(heads, clampSize((height - TOP) / layers - GAP), reach);
}

/** Thumbnails as large as width and height allow, 16 to 64 px, with the places of everything. */
export function layoutOverview({ layers, heads, width, height, reach }) {
  const across = (width - LEFT - (reach ? REACH_GAP + REACH : 0)) / heads - GAP;
  const thumb = clampSize(Math.min((height - TOP) / layers - GAP, across));
  return {
    layers, heads, thumb, pitch: thumb + GAP, left: LEFT, top: TOP,
    reachLeft: LEFT + heads * (thumb + GAP) + REACH_GAP, reachWidth: reach ? REACH : 0,
    width: widthFor(heads, thumb, reach), height: TOP + layers * (thumb + GAP),
  };
}

/** The height that a screen with the head under the overview gives it. */
export const narrowHeight = (layers, screen) => Math.max(screen * 0.7, TOP + Math.min(layers, 32) * 28);

/** The head at a point, or null. */
export function headAt(layout, x, y) {
  const layer = Math.floor((y - layout.top) / layout.pitch);
  const head = Math.floor((x - layout.left) / layout.pitch);
  const inside = layer >= 0 && layer < layout.layers && head >= 0 && head < layout.heads;
  return inside ? { layer, head } : null;
}

/** The layer whose reach bar is at a point, or null. */
export function reachAt(layout, x, y) {
  const layer = Math.floor((y - layout.top) / layout.pitch);
  return x >= layout.reachLeft && layer >= 0 && layer < layout.layers ? layer : null;
}

/** The rectangle of a head; of a whole row, column or everything where layer or head is an aggregate. */
export function boxOf(layout, { layer, head }) {
  const down = Number.isInteger(layer) ? [layer, 1] : [0, layout.layers];
  const across = Number.isInteger(head) ? [head, 1] : [0, layout.heads];
  return {
    x: layout.left + across[0] * layout.pitch, y: layout.top + down[0] * layout.pitch,
    width: across[1] * layout.pitch - GAP, height: down[1] * layout.pitch - GAP,
  };
}
