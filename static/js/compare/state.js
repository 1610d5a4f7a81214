/** What the comparison page knows, and questions about it that several modules ask. Pure. */

import { sidesOf } from '../select.js';
import { MAX_CELLS } from '../window.js';
import { WHOLE } from '../zoom.js';

export const SIDES = ['a', 'b'];
export const NO_SIDE = Object.freeze({ phase: 'empty', id: null, summary: null, progress: null, error: null });
export const NO_FOUND = Object.freeze({ status: 'none', key: null, axes: null, answer: null, error: null });
export const NO_MAP = Object.freeze({ status: 'none', key: null, window: null, error: null });
const FIRST_HEAD = Object.freeze({ site: null, layer: 0, head: 0 });

/** What is known when the page opens. `view.rows` and `view.cols` are ranges of shared segments; null is all of them. */
export const INITIAL = Object.freeze({
  recent: [],
  sides: { a: NO_SIDE, b: NO_SIDE },
  view: { a: FIRST_HEAD, b: FIRST_HEAD, ...WHOLE, scale: 'sqrt' },
  figures: { a: null, b: null, d: null }, // the size of each map, as views/figure-size.js tells it
  cells: MAX_CELLS, // of the difference
  found: NO_FOUND,
  maps: { a: NO_MAP, b: NO_MAP },
  heads: { a: null, b: null },
  cursor: null, // {a, b, d, pinned, weights, errors}: the same place in both runs and in the difference, see link.js
  scheme: 'light',
  plotly: null, // the library once it is loaded, 'failed' if it cannot be
  notice: null,
});

/** The finished run of a side, or null. */
export const runOf = (state, side) => (state.sides[side].phase === 'done' ? state.sides[side].summary : null);

/** Whether both sides have a finished run. */
export const isReady = (state) => SIDES.every((side) => runOf(state, side) !== null);

/** The site of a side: the chosen one, or the first. */
export function siteOf(state, side) {
  const sites = runOf(state, side)?.sites ?? [];
  return sites.find(({ site }) => site === state.view[side].site) ?? sites[0] ?? null;
}

/** The tokens of a side's rows and columns. */
export function axesOf(state, side) {
  const { tokens } = runOf(state, side);
  const { rows, cols } = sidesOf(siteOf(state, side).site, tokens.target.length > 0);
  return { rows: tokens[rows], cols: tokens[cols] };
}

/** The head that a side shows, as the API names it. */
export const headOf = (state, side) => ({ site: siteOf(state, side).site, layer: state.view[side].layer, head: state.view[side].head });

const sideKey = (state, side) => [state.sides[side].id, ...Object.values(headOf(state, side))].join('|');
const spanKey = (span) => (span ? span.join(':') : '');

/** What identifies the comparison that is wanted; null while a run is missing. */
export function foundKey(state) {
  if (!isReady(state)) return null;
  const coarse = state.cells === MAX_CELLS ? [] : [state.cells];
  return [...SIDES.map((side) => sideKey(state, side)), spanKey(state.view.rows), spanKey(state.view.cols), ...coarse].join('|');
}

/** What identifies a side's picture: its head, the tokens that are shown, and how coarse. */
export const mapKey = (state, side, { rows, cols, maxCells }) => [sideKey(state, side), spanKey(rows), spanKey(cols), maxCells].join('|');

/** The comparison for what is shown now, or null. */
export const answerOf = (state) => (state.found.answer && state.found.key === foundKey(state) ? state.found.answer : null);

/** Which heads are compared: whether both are the same head of the same run. */
export const isSameHead = (state) => isReady(state) && sideKey(state, 'a') === sideKey(state, 'b');
