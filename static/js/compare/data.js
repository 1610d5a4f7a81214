/** Loads the comparison and both sides' windows for what is shown. Newer wishes abort older ones. Answers retry-found, cells. */

import * as api from '../api.js';
import { fromAnswer } from '../window.js';
import { WHOLE } from '../zoom.js';
import { sideFrame } from './frame.js';
import { tokensOf } from './link.js';
import { foundKey, headOf, isReady, mapKey, NO_FOUND, NO_MAP, SIDES, siteOf } from './state.js';

/** The tokens that a side shows: the whole, or what the shared range covers; null while the shared axes are not known. */
export function shownTokens(state, side) {
  const { query_len: rows, key_len: cols } = siteOf(state, side);
  if (!state.view.rows && !state.view.cols) return { rows: [0, rows], cols: [0, cols] };
  const answer = state.found.answer;
  if (!answer?.aligned || state.found.axes !== axesKey(state)) return null;
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
        { ...side(state, 'a'), ...side(state, 'b'), rows, cols, maxCells: state.cells }, signal);
      if (signal.aborted) return;
      if (!answer.aligned && (rows || cols)) store.patch('view', WHOLE); // a range is of shared axes
      else store.set({ found: { status: 'ready', key, axes, answer, error: null } });
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === 'out_of_range' && (rows || cols)) store.patch('view', WHOLE);
      else store.set({ found: { status: 'error', key, axes, answer: same, error } });
    }
  }

  const side = (state, name) => {
    const { site, layer, head } = headOf(state, name);
    return { [name]: state.sides[name].id, [`site_${name}`]: site, [`layer_${name}`]: layer, [`head_${name}`]: head };
  };

  async function loadMap(state, name, key, ask) {
    const signal = renew(name);
    const put = (fields) => store.patch('maps', { [name]: { ...NO_MAP, key, ...fields } });
    put({ status: 'loading' });
    try {
      const request = { ...headOf(state, name), ...ask, pool: 'max' };
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
      const ask = ranges && sideFrame(store.state, name, ranges).ask;
      const wanted = ask && mapKey(store.state, name, ask);
      if (wanted && wanted !== store.state.maps[name].key) loadMap(store.state, name, wanted, ask);
    }
  }

  store.on('retry-found', () => {
    store.set({ found: NO_FOUND, maps: { a: NO_MAP, b: NO_MAP } });
    want(store.state);
  });
  store.on('cells', ({ cells }) => cells !== store.state.cells && store.set({ cells })); // as many as the difference's figure can show
  store.subscribe(['sides', 'view', 'found', 'figures', 'cells'], want);
}
