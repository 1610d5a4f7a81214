/**
 * How coarse a heat map has to be: every cell gets a pixel of the screen at least, so that none is lost; and which part is
 * asked for, by which steps. Cells are whole ones: a zoomed range is widened to where they end. Pure.
 */

import { longestLabels } from './map-figure.js';
import { placeMap } from './map-geometry.js';
import { mapAxes, mapSize, shownRange } from './select.js';
import { MAX_CELLS } from './window.js';

// Device pixels of a cell's side. The browser takes for each pixel the cell under its middle: above 1 each cell has a
// middle well inside it, wherever the figure lies between two pixels.
const LEAST = 1.02;
const NO_LETTERS = { rows: 2, cols: 2 };

const count = ([from, to], step) => Math.ceil(to / step) - Math.floor(from / step);
const widened = ([from, to], step) => [Math.floor(from / step) * step, Math.ceil(to / step) * step];
const clipped = ([from, to], length) => [from, Math.min(to, length)];
const upTo = (step, unit) => Math.ceil(step / unit) * unit;

/** The steps, equal ones, by which the service is asked: what is coarser is pooled here, exactly. */
function servedStep(rows, cols, steps, pool) {
  if (count(rows, 1) * count(cols, 1) <= MAX_CELLS) return 1;
  const [low, high] = [Math.min(steps.row, steps.col), Math.max(steps.row, steps.col)];
  let step = pool === 'max' ? low : high; // a mean of means would not be the mean
  while (count(rows, step) * count(cols, step) > MAX_CELLS) step += 1;
  return step;
}

/** The coarser step that gives each of an axis's cells its pixels; the same one where they have them. */
function coarser(step, range, pixels) {
  const cells = count(range, step);
  return cells <= 1 || pixels >= cells * LEAST ? step : Math.max(step + 1, Math.floor((step * cells * LEAST) / Math.max(1, pixels)));
}

/** {place, rowStep, colStep, ask} for a figure {width, height, ratio}, ranges of places and letters of the longest labels. */
export function fitFrame({ width, height, ratio }, { rows, cols }, lengths, letters, pool) {
  let steps = { row: 1, col: 1 };
  for (;;) {
    const served = servedStep(rows, cols, steps, pool);
    const [rowStep, colStep] = [upTo(steps.row, served), upTo(steps.col, served)];
    const [down, across] = [widened(rows, rowStep), widened(cols, colStep)];
    const place = { ...placeMap({ width, height }, down, across, letters), lengths };
    const next = { row: coarser(rowStep, down, place.height * ratio), col: coarser(colStep, across, place.width * ratio) };
    if (next.row === rowStep && next.col === colStep) {
      const ask = { rows: clipped(down, lengths.rows), cols: clipped(across, lengths.cols) };
      const maxCells = served === 1 ? MAX_CELLS : count(ask.rows, served) * count(ask.cols, served);
      return { place, rowStep, colStep, ask: { ...ask, maxCells } };
    }
    steps = next;
  }
}

/** The frame of the main page's heat map; without a place while its figure has no size. */
export function frameOf(state) {
  const ranges = shownRange(state);
  const { figure, view } = state;
  if (!figure) return { place: null, rowStep: 1, colStep: 1, ask: { ...ranges, maxCells: MAX_CELLS } };
  const tokens = mapAxes(state);
  const letters = tokens.rows.length ? longestLabels(tokens, ranges.rows, ranges.cols, figure) : NO_LETTERS;
  return fitFrame(figure, ranges, mapSize(state), letters, view.pool);
}
