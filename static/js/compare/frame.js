/** How coarse each of the three maps has to be for its figure's pixels, and what is asked for then. Pure. */

import { longestLabels } from '../map-figure.js';
import { fitFrame } from '../map-frame.js';
import { MAX_CELLS } from '../window.js';
import { axesOf, siteOf } from './state.js';

function frame(figure, ranges, lengths, tokens, pool) {
  if (!figure) return { place: null, rowStep: 1, colStep: 1, ask: { ...ranges, maxCells: MAX_CELLS } };
  return fitFrame(figure, ranges, lengths, longestLabels(tokens, ranges.rows, ranges.cols, figure), pool);
}

/** The frame of side 'a' or 'b', which shows these ranges of its tokens. */
export function sideFrame(state, name, ranges) {
  const { query_len: rows, key_len: cols } = siteOf(state, name);
  return frame(state.figures[name], ranges, { rows, cols }, axesOf(state, name), 'max');
}

/** The frame of the difference, which has these tokens. */
export function differenceFrame(state, { axis_rows: down, axis_cols: across, rows, cols }, tokens) {
  return frame(state.figures.d, { rows, cols }, { rows: down.length, cols: across.length }, tokens, 'mean');
}
