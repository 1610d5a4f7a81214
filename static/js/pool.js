/** Makes a window coarser: several of its cells in one, the largest or the mean of those that are not masked. Pure. */

const firstCell = (start, step) => Math.floor(start / step);

/** For each coarse cell of an axis, the half-open range of the cells of `step` that lie in it. */
function groups([from, to], step, coarse) {
  const first = firstCell(from, step);
  const found = [];
  for (let cell = firstCell(from, coarse); cell * coarse < to; cell += 1) {
    const start = Math.max(from, cell * coarse);
    const stop = Math.min(to, (cell + 1) * coarse);
    found.push([firstCell(start, step) - first, Math.ceil(stop / step) - first]);
  }
  return found;
}

/** The largest or the mean of a block of cells; null where all of them are masked. */
function reduced(z, [top, bottom], [left, right], mean) {
  let largest = null;
  let sum = 0;
  let visible = 0;
  for (let row = top; row < bottom; row += 1) {
    for (let col = left; col < right; col += 1) {
      const value = z[row][col];
      if (value === null) continue;
      if (largest === null || value > largest) largest = value;
      sum += value;
      visible += 1;
    }
  }
  return mean && visible ? sum / visible : largest;
}

const meanOf = (values) => {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

/**
 * The window with cells of these steps, which are multiples of its own; as it is where they are no others. A mean is
 * exact only where the cells of the window are single weights.
 */
export function pooled(window, rowStep, colStep) {
  const { rows, cols, z, removed } = window;
  const same = rowStep === window.rowStep && colStep === window.colStep;
  if (same || rowStep % window.rowStep || colStep % window.colStep) return window;
  const down = groups(rows, window.rowStep, rowStep);
  const across = groups(cols, window.colStep, colStep);
  const mean = window.pool === 'mean';
  return {
    ...window, rowStep, colStep,
    z: down.map((row) => across.map((col) => reduced(z, row, col, mean))),
    removed: removed ? down.map(([top, bottom]) => meanOf(removed.slice(top, bottom))) : removed,
  };
}
