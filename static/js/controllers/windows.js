/**
 * Loads the window that the heat map shows. Until it arrives the head's own tile of the overview stands in for it, marked
 * as approximate. The newest wish wins: older requests are aborted, and an answer is kept only under the key it was asked for.
 */

import * as api from '../api.js';
import { finished, mapKey, shownHead, shownRange, siteOf } from '../select.js';
import { fromAnswer, fromTile } from '../window.js';

const KEPT = 24; // windows remembered, so that walking back over heads asks nothing
const MAX_CELLS = 65536;
const PREVIEW_WAIT = 70; // ms that a previewed head must stay before its exact weights are fetched

/** Follows run, view and preview. */
export function controlWindows(store) {
  const cache = new Map();
  let wanted = null;
  let fetching = new AbortController();
  let timer = 0;

  function remember(key, window) {
    cache.set(key, window);
    if (cache.size > KEPT) cache.delete(cache.keys().next().value);
  }

  async function load(key, request, id) {
    const { signal } = fetching;
    try {
      const window = fromAnswer(await api.getWindow(id, request, signal));
      remember(key, window);
      if (wanted === key && !signal.aborted) store.set({ map: { status: 'ready', key, window, error: null } });
    } catch (error) {
      if (wanted === key && !signal.aborted) store.set({ map: { status: 'error', key, window: null, error } });
    }
  }

  function want(state) {
    if (!finished(state)) {
      stop();
      if (state.map.status !== 'none') store.set({ map: { status: 'none', key: null, window: null, error: null } });
      return;
    }
    const key = mapKey(state);
    const standIn = state.map.key === key && state.map.status === 'loading' && !state.map.window;
    if (key === wanted && !(standIn && state.overview.status === 'ready')) return;
    if (key !== wanted) begin(state, key);
    else store.patch('map', { window: fromTile(state) });
  }

  function begin(state, key) {
    stop();
    wanted = key;
    const known = cache.get(key);
    if (known) {
      store.set({ map: { status: 'ready', key, window: known, error: null } });
      return;
    }
    store.set({ map: { status: 'loading', key, window: fromTile(state), error: null } });
    fetching = new AbortController();
    const { pool } = state.view;
    const request = { site: siteOf(state).site, ...shownHead(state), ...shownRange(state), pool, maxCells: MAX_CELLS };
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
  store.subscribe(['run', 'view', 'preview', 'overview'], want);
}
