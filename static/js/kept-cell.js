/**
 * The cell of the heat map that the reader keeps: {row, col, run, site, unit}, places of the map that it was kept on; and the
 * address's field of it. It belongs to that map alone. Pure.
 */

import { finished, mapSize, siteOf } from './select.js';

/** The cell as it is kept on the map that is shown. */
export const keptOn = (state, cell) =>
  cell && { row: cell.row, col: cell.col, run: state.run.id, site: siteOf(state)?.site ?? null, unit: state.view.unit };

/** The kept cell {row, col} where the map that is shown has it; null otherwise. */
export function keptCell(state) {
  const { pinned, view } = state;
  if (!pinned || !finished(state) || pinned.run !== state.run.id || pinned.unit !== view.unit) return null;
  if (pinned.site !== null && pinned.site !== siteOf(state)?.site) return null;
  const { rows, cols } = mapSize(state);
  return pinned.row < rows && pinned.col < cols ? { row: pinned.row, col: pinned.col } : null;
}

/** The cell that is read: the one under the pointer, else the kept one. */
export const readCell = (state) => state.cursor ?? keptCell(state);

/** The address's field: cell=29:12, null where none is kept. */
export function cellField(state) {
  const cell = keptCell(state);
  return { cell: cell && `${cell.row}:${cell.col}` };
}

/** The cell that a fragment keeps in the run and view that it names, or null. */
export function cellOf(fragment, { run, view }) {
  const match = /^(\d{1,9}):(\d{1,9})$/.exec(new URLSearchParams(fragment.replace(/^#/, '')).get('cell') ?? '');
  return match && run !== null ? { row: Number(match[1]), col: Number(match[2]), run, site: view.site, unit: view.unit } : null;
}
