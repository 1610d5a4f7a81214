/** Where cells of the heat map lie in its figure, in CSS pixels. Pure. */

const RIGHT = 6;
const TOP = 24; // the axes' names, above the half of the first row's label that low rows leave no room for
const LEAST_LEFT = 52; // the name of the rows
const SLANT = { down: 0.87, left: 0.5 }; // sin and cos 60°, the slant of the labels below
const READABLE = 34; // px of a cell's side up to which the cells of a long, thin matrix are stretched
const STRETCH = 3; // and at most so many times as long as wide
const LABELLED = 14; // px of a row's side with which each has a label: a few rows of many columns have that at least

/** Room for labels so many px long beside and below; those below lean to the left, so the first one needs room there too. */
function marginFor({ rows, cols }) {
  return {
    left: Math.max(LEAST_LEFT, Math.round(14 + rows), Math.round(4 + cols * SLANT.left)), right: RIGHT, top: TOP,
    bottom: Math.round(18 + cols * SLANT.down),
  };
}

/** A cell's side along the axis that has room to spare: as the other one, stretched in reason where that is small. */
const stretched = (cell, room) => Math.max(cell, Math.min(room, READABLE, Math.max(LABELLED, cell * STRETCH)));

/** The plot's rectangle in a figure of this size, for these ranges and labels so many px long. Squares have square cells. */
export function placeMap({ width, height }, rows, cols, letters) {
  const margin = marginFor(letters);
  const down = rows[1] - rows[0];
  const across = cols[1] - cols[0];
  const most = { width: (width - margin.left - margin.right) / across, height: (height - margin.top - margin.bottom) / down };
  const cell = Math.max(0.02, Math.min(most.width, most.height));
  const wide = across === down ? cell : stretched(cell, most.width);
  const high = across === down ? cell : stretched(cell, most.height);
  return { margin, letters, rows, cols, left: margin.left, top: margin.top, width: Math.floor(wide * across), height: Math.floor(high * down) };
}

/** The cell {row, col} at a point of the figure; outside it is null, or the nearest one if wanted. */
export function cellAtPoint(place, x, y, nearest = false) {
  const inside = (share) => (nearest ? Math.min(0.999999, Math.max(0, share)) : share);
  const across = inside((x - place.left) / place.width);
  const down = inside((y - place.top) / place.height);
  if (across < 0 || across >= 1 || down < 0 || down >= 1) return null;
  // the last cell of a coarse picture may reach beyond the last token
  const index = (share, [from, to], length) => Math.min(length - 1, from + Math.floor(share * (to - from)));
  return {
    row: index(down, place.rows, place.lengths.rows), col: index(across, place.cols, place.lengths.cols),
  };
}

/** The rectangle of half-open ranges of rows and columns, clipped to the plot; null where nothing of it is visible. */
export function rectOf(place, rows, cols) {
  const along = ([from, to], range, size) => {
    const unit = size / (range[1] - range[0]);
    const start = Math.max(0, (from - range[0]) * unit);
    const end = Math.min(size, (to - range[0]) * unit);
    return end > start ? [start, end - start] : null;
  };
  const down = along(rows, place.rows, place.height);
  const across = along(cols, place.cols, place.width);
  if (!down || !across) return null;
  return { x: place.left + across[0], y: place.top + down[0], width: across[1], height: down[1] };
}
