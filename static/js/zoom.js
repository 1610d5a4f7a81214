/** Ranges of places on the two axes of a heat map as one zooms: square where the matrix allows. Pure. */

/** No range: all rows and columns. */
export const WHOLE = Object.freeze({ rows: null, cols: null });
const SMALLEST = 4; // places across at the closest zoom

/** A range of `size` places round `centre` that stays within 0…length. */
function around(centre, size, length) {
  const width = Math.min(length, Math.max(SMALLEST, Math.round(size)));
  const start = Math.min(length - width, Math.max(0, Math.round(centre - width / 2)));
  return [start, start + width];
}

/** Two ranges made equally long round their middles, in a matrix of so many rows and columns; WHOLE where they hold it all. */
export function squared(lengths, rows, cols) {
  const size = Math.max(rows[1] - rows[0], cols[1] - cols[0]);
  const down = around((rows[0] + rows[1]) / 2, size, lengths.rows);
  const across = around((cols[0] + cols[1]) / 2, size, lengths.cols);
  const all = down[1] - down[0] === lengths.rows && across[1] - across[0] === lengths.cols;
  return all ? WHOLE : { rows: down, cols: across };
}

/** A range made longer or shorter by a factor, while one place of it, its middle if none is named, stays where it is. */
export function scaled([from, to], factor, place = (from + to) / 2) {
  return [place - (place - from) * factor, place + (to - place) * factor];
}

/** The same with a place that may lie outside the range: it is in the middle then. */
export function towards([from, to], factor, place) {
  const inside = place >= from && place < to;
  const half = ((to - from) * factor) / 2;
  return inside ? scaled([from, to], factor, place + 0.5) : [place + 0.5 - half, place + 0.5 + half];
}

const CLOSE = 24; // places on each side of a cell that one is taken to

/** The ranges round a cell, close enough to tell it from its neighbours. */
export const closeTo = ({ row, col }) => ({ rows: [row - CLOSE, row + CLOSE], cols: [col - CLOSE, col + CLOSE] });
