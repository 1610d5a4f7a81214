/**
 * A window of one head: {rows, cols, rowStep, colStep, z, exact, largest}. `z` is rows of cells, null where masked; cells
 * are aligned to index 0, so the first and last may reach beyond the window. `exact` is false for the overview's stand-in.
 * `largest` is what no cell of the whole head exceeds; exact windows also have {lens, unit, formula, removed}.
 */

import { maskedCell } from './masks.js';
import { isPlain, maskOf, shownHead, siteOf } from './select.js';

/** Cells that a window may have: 256 × 256, more than a figure has room for. */
export const MAX_CELLS = 65536;

/** The window in the service's answer. */
export function fromAnswer(answer) {
  const { rows, cols, row_step: rowStep, col_step: colStep, pool, weights, unit_max: largest } = answer;
  const { lens, unit, formula, removed } = answer;
  return { rows, cols, rowStep, colStep, pool, z: weights, exact: true, largest, lens, unit, formula, removed };
}

/** The shown head's tile of the overview as a window over the whole matrix; null where there is no such tile. */
export function fromTile(state) {
  const { layer, head } = shownHead(state);
  const { shape, cells, pool } = state.overview;
  const site = siteOf(state);
  if (!isPlain(state) || !cells || pool !== state.view.pool || !Number.isInteger(layer) || !Number.isInteger(head)) return null;
  const [, heads, gridRows, gridCols] = shape;
  const start = (layer * heads + head) * gridRows * gridCols;
  const masked = maskedCell(maskOf(site, layer), site);
  const z = Array.from({ length: gridRows }, (_, row) =>
    Array.from({ length: gridCols }, (__, col) =>
      masked(row, col) ? null : (cells[start + row * gridCols + col] / 255) ** 2));
  return {
    rows: [0, site.query_len], cols: [0, site.key_len], rowStep: site.row_step, colStep: site.col_step, pool, z, exact: false, largest: 1,
  };
}

/** Whether the window holds all of these ranges. */
export const covers = (window, rows, cols) =>
  window.rows[0] <= rows[0] && window.rows[1] >= rows[1] && window.cols[0] <= cols[0] && window.cols[1] >= cols[1];

/** Index of the window's first cell along an axis with this start and step. */
const firstCell = (start, step) => Math.floor(start / step);

/** The cell that holds (row, col): {value, rows, cols}, with the weights it stands for; null outside the window. */
export function cellAt(window, row, col) {
  const { rows, cols, rowStep, colStep, z } = window;
  if (row < rows[0] || row >= rows[1] || col < cols[0] || col >= cols[1]) return null;
  const down = Math.floor(row / rowStep);
  const across = Math.floor(col / colStep);
  const value = z[down - firstCell(rows[0], rowStep)]?.[across - firstCell(cols[0], colStep)];
  const part = (cell, step, range) => [Math.max(cell * step, range[0]), Math.min((cell + 1) * step, range[1])];
  return { value: value ?? null, rows: part(down, rowStep, rows), cols: part(across, colStep, cols) };
}

/** Where Plotly puts the window: centre of the first cell and distance of cells, on integer axes. */
export function placement({ rows, cols, rowStep, colStep }) {
  const centre = (start, step) => firstCell(start, step) * step + (step - 1) / 2;
  return { x0: centre(cols[0], colStep), dx: colStep, y0: centre(rows[0], rowStep), dy: rowStep };
}

/** Whether every cell is one weight. */
export const isUnpooled = (window) => window.exact && window.rowStep === 1 && window.colStep === 1;
