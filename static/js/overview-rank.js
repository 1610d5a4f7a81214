/** Where thumbnails lie when heads are in order of a score: line by line, the first at the top left. Pure geometry in CSS pixels. */

const SIZE = 60; // width of a thumbnail, before the lines are filled: a place and a figure fit under it
const EDGE = 3; // around all of them, for the frame of the chosen head
const GAP = 6;
const LABEL = 16; // height of the line under a thumbnail that names the head

/** The places of `order`, [{layer, head}], in lines of this width. */
export function layoutRanked({ order, width, aspect = 1 }) {
  const room = width - 2 * EDGE;
  const columns = Math.max(1, Math.floor((room + GAP) / (SIZE + GAP)));
  const wide = Math.floor((room - (columns - 1) * GAP) / columns);
  const high = Math.round(wide * aspect);
  const pitch = { x: wide + GAP, y: high + LABEL + GAP };
  const ranks = new Map(order.map(({ layer, head }, rank) => [`${layer}.${head}`, rank]));
  return { order, ranks, columns, thumb: { width: wide, height: high }, pitch, width, height: Math.ceil(order.length / columns) * pitch.y + EDGE };
}

/** Top left of the thumbnail at a rank. */
export const spotOf = ({ columns, pitch }, rank) => ({ x: EDGE + (rank % columns) * pitch.x, y: EDGE + Math.floor(rank / columns) * pitch.y });

/** The head at a point, or null. */
export function rankedAt({ order, columns, pitch }, x, y) {
  const across = Math.max(0, Math.floor((x - EDGE) / pitch.x));
  const rank = Math.max(0, Math.floor((y - EDGE) / pitch.y)) * columns + across;
  return across < columns && rank < order.length ? order[rank] : null;
}

/** The rectangle of a head's thumbnail; null where it is not shown. */
export function rankedBox(layout, { layer, head }) {
  const rank = layout.ranks.get(`${layer}.${head}`);
  return rank === undefined ? null : { ...spotOf(layout, rank), width: layout.thumb.width, height: layout.thumb.height };
}

/** The half-open range of ranks whose thumbnails are seen between two heights. */
export function ranksBetween({ columns, pitch, order }, top, bottom) {
  return [Math.max(0, Math.floor((top - EDGE) / pitch.y)) * columns, Math.min(order.length, Math.ceil((bottom - EDGE) / pitch.y) * columns)];
}
