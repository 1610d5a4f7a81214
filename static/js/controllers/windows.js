/**
 * Loads the window that the heat map shows. Until it arrives the head's own tile of the overview stands in for it, marked
 * as approximate, and after a failure too. The newest wish wins: older requests are aborted, and an answer is kept only under the key it was asked for.
 */

import * as api from '../api.js';
import { finished, headKey, mapKey, mapSize, shownHead, shownRange, siteOf, unitsKey } from '../select.js';
import { covers, fromAnswer, fromTile, MAX_CELLS } from '../window.js';

const KEPT = 24; // windows remembered, so that walking back over heads asks nothing
const PREVIEW_WAIT = 70; // ms that a previewed head must stay before its exact weights are fetched

/** Follows run, view and preview. */
export function controlWindows(store) {
  const cache = new Map();
  let wanted = null;
  let fetching = new AbortController();
  let timer = 0;
  let latest = null; // the last exact window, which stands in for a zoom into it: {head, window}

  function remember(key, window) {
    cache.set(key, window);
    if (cache.size > KEPT) cache.delete(cache.keys().next().value);
  }

  /** The picture until the exact one arrives: the window one zooms into, else the head's tile. */
  function standIn(state) {
    const { rows, cols } = shownRange(state);
    const holds = latest && latest.head === headKey(state) && covers(latest.window, rows, cols);
    return holds ? { ...latest.window, exact: false } : fromTile(state);
  }

  async function load(key, request, id) {
    const { signal } = fetching;
    try {
      const window = fromAnswer(await api.getWindow(id, request, signal));
      remember(key, window);
      if (wanted !== key || signal.aborted) return;
      latest = { head: headKey(store.state), window };
      store.set({ map: { status: 'ready', key, window, error: null } });
    } catch (error) {
      if (wanted === key && !signal.aborted) store.set({ map: { status: 'error', key, window: standIn(store.state), error } });
    }
  }

  function want(state) {
    if (!finished(state)) {
      stop();
      if (state.map.status !== 'none') store.set({ map: { status: 'none', key: null, window: null, error: null } });
      return;
    }
    if (!mapSize(state).rows) { // its units are on their way, or cannot be had
      stop();
      const { status, error } = state.units;
      const failed = status === 'error' && state.units.key === unitsKey(state);
      store.set({ map: { status: failed ? 'error' : 'loading', key: null, window: null, error: failed ? error : null } });
      return;
    }
    const key = mapKey(state);
    const waiting = state.map.key === key && state.map.status === 'loading' && !state.map.window;
    if (key === wanted && !(waiting && state.overview.status === 'ready')) return;
    if (key !== wanted) begin(state, key);
    else store.patch('map', { window: standIn(state) });
  }

  function begin(state, key) {
    stop();
    wanted = key;
    const known = cache.get(key);
    if (known) {
      latest = { head: headKey(state), window: known };
      store.set({ map: { status: 'ready', key, window: known, error: null } });
      return;
    }
    store.set({ map: { status: 'loading', key, window: standIn(state), error: null } });
    fetching = new AbortController();
    const { pool, lens, unit } = state.view;
    const request = { site: siteOf(state).site, ...shownHead(state), ...shownRange(state), pool, lens, unit, maxCells: MAX_CELLS };
    timer = setTimeout(() => load(key, request, state.run.id), state.preview ? PREVIEW_WAIT : 0);
  }

  function stop() {
    clearTimeout(timer);
    fetching.abort();
    wanted = null;
  }

  store.on('retry-map', () => {
    wanted = null;
    want(store.state);
  });
  store.subscribe(['run', 'view', 'preview', 'overview', 'units'], want);
}
