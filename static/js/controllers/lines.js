/**
 * Loads the row (or column) of the shown head for the shown token, which colours the strips and fills the table.
 * Taken from the heat map's window where that holds it unpooled; else fetched. The newest wish wins.
 */

import * as api from '../api.js';
import { finished, isPlain, lineKey, mapKey, shownHead, shownToken, siteOf } from '../select.js';
import { isUnpooled } from '../window.js';

const NO_LINE = { status: 'none', key: null, index: null, dir: 'row', weights: null, error: null };
const HOVER_WAIT = 50; // ms

/** Follows run, view, preview, hovered token and the heat map's window. */
export function controlLines(store) {
  let wanted = null;
  let fetching = new AbortController();
  let timer = 0;

  function fromMap(state, index, dir, length) {
    const { window, key } = state.map;
    if (!isPlain(state) || key !== mapKey(state) || !window || !isUnpooled(window)) return null;
    const [along, across] = dir === 'row' ? [window.cols, window.rows] : [window.rows, window.cols];
    if (along[0] !== 0 || along[1] !== length || index < across[0] || index >= across[1]) return null;
    return dir === 'row' ? window.z[index - across[0]] : window.z.map((row) => row[index - across[0]]);
  }

  async function load(key, index, dir, request, id) {
    const { signal } = fetching;
    try {
      const { weights } = await api.getWindow(id, request, signal);
      const line = dir === 'row' ? weights[0] : weights.map((row) => row[0]);
      if (wanted === key && !signal.aborted) show(key, index, dir, line);
    } catch (error) {
      if (wanted === key && !signal.aborted) store.set({ line: { ...NO_LINE, status: 'error', key, index, dir, error } });
    }
  }

  const show = (key, index, dir, weights) => store.set({ line: { status: 'ready', key, index, dir, weights, error: null } });

  function want(state) {
    const token = shownToken(state);
    if (!finished(state) || token === null) {
      stop();
      if (state.line.status !== 'none') store.set({ line: NO_LINE });
      return;
    }
    const { index, dir } = token;
    const key = lineKey(state);
    if (key === wanted) return;
    stop();
    const site = siteOf(state);
    const length = dir === 'row' ? site.key_len : site.query_len;
    const known = fromMap(state, index, dir, length);
    wanted = key;
    if (known) {
      show(key, index, dir, known);
      return;
    }
    store.patch('line', { status: 'loading', key, index, dir, error: null });
    fetching = new AbortController();
    const one = [index, index + 1];
    const whole = [0, length];
    const ranges = dir === 'row' ? { rows: one, cols: whole } : { rows: whole, cols: one };
    const request = { site: site.site, ...shownHead(state), ...ranges, pool: state.view.pool, maxCells: length };
    const waits = state.hoverToken !== null || state.preview !== null;
    timer = setTimeout(() => load(key, index, dir, request, state.run.id), waits ? HOVER_WAIT : 0);
  }

  function stop() {
    clearTimeout(timer);
    fetching.abort();
    wanted = null;
  }

  store.subscribe(['run', 'view', 'preview', 'hoverToken', 'map'], want);
}
