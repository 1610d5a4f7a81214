/** Loads the comparison and both sides' windows for what is shown. Newer wishes abort older ones. Answers retry-found. */

import * as api from '../api.js';
import { debounce } from '../dom.js';
import { fromAnswer } from '../window.js';
import { linked, tokensOf, weightOf } from './link.js';
import { answerOf, foundKey, headOf, isReady, mapKey, NO_FOUND, NO_MAP, SIDES, siteOf } from './state.js';

const MAX_CELLS = 65536;
const HOVER_WAIT = 60; // ms

/** The tokens that a side shows: the whole, or what the shared range covers; null while the shared axes are not known. */
export function shownTokens(state, side) {
  const { query_len: rows, key_len: cols } = siteOf(state, side);
  if (!state.view.rows && !state.view.cols) return { rows: [0, rows], cols: [0, cols] };
  const answer = state.found.answer;
  if (!answer?.aligned || !state.found.axes?.startsWith(axesKey(state))) return null;
  return {
    rows: tokensOf(answer.axis_rows, side, state.view.rows, rows), cols: tokensOf(answer.axis_cols, side, state.view.cols, cols),
  };
}

/** What identifies the shared axes, whatever heads are shown. */
const axesKey = (state) => SIDES.map((side) => `${state.sides[side].id}|${siteOf(state, side).site}`).join('|');

/** Follows runs and view. */
export function controlData(store) {
  const fetching = { found: new AbortController(), a: new AbortController(), b: new AbortController() };
  const renew = (name) => {
    fetching[name].abort();
    fetching[name] = new AbortController();
    return fetching[name].signal;
  };

  async function loadFound(state, key) {
    const signal = renew('found');
    const axes = axesKey(state);
    const same = state.found.axes === axes ? state.found.answer : null; // its axes stand until the answer is there
    store.set({ found: { status: 'loading', key, axes, answer: same, error: null } });
    const { rows, cols } = state.view;
    try {
      const answer = await api.getComparison(
        { ...side(state, 'a'), ...side(state, 'b'), rows, cols, maxCells: MAX_CELLS }, signal);
      if (!signal.aborted) store.set({ found: { status: 'ready', key, axes, answer, error: null } });
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === 'out_of_range' && (rows || cols)) store.patch('view', { rows: null, cols: null });
      else store.set({ found: { ...NO_FOUND, status: 'error', key, error } });
    }
  }

  const side = (state, name) => {
    const { site, layer, head } = headOf(state, name);
    return { [name]: state.sides[name].id, [`site_${name}`]: site, [`layer_${name}`]: layer, [`head_${name}`]: head };
  };

  async function loadMap(state, name, key, ranges) {
    const signal = renew(name);
    const put = (fields) => store.patch('maps', { [name]: { ...NO_MAP, key, ...fields } });
    put({ status: 'loading' });
    try {
      const request = { ...headOf(state, name), ...ranges, pool: 'max', maxCells: MAX_CELLS };
      const window = fromAnswer(await api.getWindow(state.sides[name].id, request, signal));
      if (!signal.aborted) put({ status: 'ready', window });
    } catch (error) {
      if (!signal.aborted) put({ status: 'error', error });
    }
  }

  function want(state) {
    if (!isReady(state)) {
      for (const name of Object.keys(fetching)) fetching[name].abort();
      if (state.found !== NO_FOUND) store.set({ found: NO_FOUND, maps: { a: NO_MAP, b: NO_MAP }, cursor: null });
      return;
    }
    const key = foundKey(state);
    if (key !== state.found.key) loadFound(state, key);
    for (const name of SIDES) {
      const ranges = shownTokens(store.state, name);
      const wanted = ranges && mapKey(store.state, name, ranges);
      if (wanted && wanted !== store.state.maps[name].key) loadMap(store.state, name, wanted, ranges);
    }
  }

  store.on('retry-found', () => {
    store.set({ found: NO_FOUND, maps: { a: NO_MAP, b: NO_MAP } });
    want(store.state);
  });
  store.subscribe(['sides', 'view', 'found'], want);
  controlCursor(store);
}

/** The weights under the cursor, exact: from the windows that are held, else asked for. */
function controlCursor(store) {
  let fetching = new AbortController();
  const fetchWeights = debounce(async (cursor, missing) => {
    const { signal } = fetching;
    const { state } = store;
    const found = await Promise.all(missing.map(async (name) => {
      const request = { ...headOf(state, name), rows: cursor[name].rows, cols: cursor[name].cols, pool: 'max', maxCells: MAX_CELLS };
      return [name, weightOf(fromAnswer(await api.getWindow(state.sides[name].id, request, signal)), cursor[name])];
    })).catch(() => null);
    if (found && !signal.aborted) store.patch('cursor', { weights: { ...cursor.weights, ...Object.fromEntries(found) } });
  }, HOVER_WAIT);

  function place(next) {
    fetching.abort();
    fetching = new AbortController();
    fetchWeights.cancel();
    if (!next) {
      store.set({ cursor: null });
      return;
    }
    const weights = Object.fromEntries(SIDES.map((name) => [name, next[name] ? weightOf(store.state.maps[name].window, next[name]) : null]));
    const cursor = { ...next, weights };
    store.set({ cursor });
    const missing = SIDES.filter((name) => weights[name] === undefined);
    if (missing.length) fetchWeights(cursor, missing);
  }

  store.on('cursor', ({ map, cell, pinned = false }) => {
    const now = store.state.cursor;
    if (!cell) {
      if (now && !now.pinned) place(null);
      return;
    }
    const answer = answerOf(store.state);
    if (!answer || (now?.pinned && !pinned)) return;
    if (now && now.map === map && now.row === cell.row && now.col === cell.col && now.pinned === pinned) return;
    place({ ...linked(answer, map, cell.row, cell.col), map, row: cell.row, col: cell.col, pinned });
  });
  store.on('let-go', () => place(null));
  store.subscribe(['maps'], ({ cursor }) => cursor && place(cursor), { now: false });
  store.subscribe(['found'], ({ found, cursor }) => cursor && found.status === 'none' && place(null), { now: false });
}
