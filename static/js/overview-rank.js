/** Where thumbnails lie when heads are in order of a score: line by line, the first at the top left. Pure geometry in CSS pixels. */

const SIZE = 48; // width of a thumbnail, before the lines are filled
const GAP = 6;
const LABEL = 13; // height of the line under a thumbnail that names the head

/** The places of `order`, [{layer, head}], in lines of this width. */
export function layoutRanked({ order, width, aspect = 1 }) {
  const columns = Math.max(1, Math.floor((width + GAP) / (SIZE + GAP)));
  const wide = Math.floor((width - (columns - 1) * GAP) / columns);
  const high = Math.round(wide * aspect);
  const pitch = { x: wide + GAP, y: high + LABEL + GAP };
  const ranks = new Map(order.map(({ layer, head }, rank) => [`${layer}.${head}`, rank]));
  return { order, ranks, columns, thumb: { width: wide, height: high }, pitch, width, height: Math.ceil(order.length / columns) * pitch.y };
}

/** Top left of the thumbnail at a rank. */
export const spotOf = ({ columns, pitch }, rank) => ({ x: (rank % columns) * pitch.x, y: Math.floor(rank / columns) * pitch.y });

/** The head at a point, or null. */
export function rankedAt({ order, columns, pitch }, x, y) {
  const across = Math.floor(x / pitch.x);
  const rank = Math.floor(y / pitch.y) * columns + across;
  return across >= 0 && across < columns && rank >= 0 && rank < order.length ? order[rank] : null;
}

/** The rectangle of a head's thumbnail; null where it is not shown. */
export function rankedBox(layout, { layer, head }) {
  const rank = layout.ranks.get(`${layer}.${head}`);
  return rank === undefined ? null : { ...spotOf(layout, rank), width: layout.thumb.width, height: layout.thumb.height };
}

/** The half-open range of ranks whose thumbnails are seen between two heights. */
export function ranksBetween({ columns, pitch, order }, top, bottom) {
  return [Math.max(0, Math.floor(top / pitch.y)) * columns, Math.min(order.length, Math.ceil(bottom / pitch.y) * columns)];
}
