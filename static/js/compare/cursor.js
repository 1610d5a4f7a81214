/**
 * The place that is read, and the exact weights there: from the windows that are held, else asked for.
 * Answers cursor, let-go, retry-cursor; and Escape, wherever the focus is, since a change of the list is kept without a map's.
 */

import * as api from '../api.js';
import { debounce } from '../dom.js';
import { fromAnswer, MAX_CELLS } from '../window.js';
import { linked, weightOf } from './link.js';
import { answerOf, headOf, SIDES } from './state.js';

const HOVER_WAIT = 60; // ms

/** Fetches weights that no window holds; the newest place wins. Gives {ask, stop}. */
function exactWeights(store) {
  let fetching = new AbortController();

  async function load(cursor, name) {
    const { signal } = fetching;
    const { state } = store;
    const request = { ...headOf(state, name), rows: cursor[name].rows, cols: cursor[name].cols, pool: 'max', maxCells: MAX_CELLS };
    const keep = (kind, value) => !signal.aborted && store.patch('cursor', { [kind]: { ...store.state.cursor[kind], [name]: value } });
    try {
      keep('weights', weightOf(fromAnswer(await api.getWindow(state.sides[name].id, request, signal)), cursor[name]));
    } catch (error) {
      keep('errors', error);
    }
  }

  const later = debounce((cursor, missing) => missing.forEach((name) => load(cursor, name)), HOVER_WAIT);
  return {
    ask: later,
    stop() {
      later.cancel();
      fetching.abort();
      fetching = new AbortController();
    },
  };
}

/** Follows the pointer, the keys and what is held. */
export function controlCursor(store) {
  const exact = exactWeights(store);

  function place(next) {
    exact.stop();
    if (!next) {
      store.set({ cursor: null });
      return;
    }
    const weights = Object.fromEntries(SIDES.map((name) => [name, next[name] ? weightOf(store.state.maps[name].window, next[name]) : null]));
    const cursor = { ...next, weights, errors: {} };
    store.set({ cursor });
    const missing = SIDES.filter((name) => weights[name] === undefined);
    if (missing.length) exact.ask(cursor, missing);
  }

  store.on('cursor', ({ map, cell, pinned = false }) => {
    const now = store.state.cursor;
    if (!cell) { // the pointer left the map: what is kept stays
      if (now && !now.pinned) place(null);
      return;
    }
    const answer = answerOf(store.state);
    if (!answer || (now?.pinned && !pinned)) return;
    if (now && now.map === map && now.row === cell.row && now.col === cell.col && now.pinned === pinned) return;
    place({ ...linked(answer, map, cell.row, cell.col), map, row: cell.row, col: cell.col, pinned });
  });
  store.on('let-go', () => place(null));
  store.on('retry-cursor', () => store.state.cursor && place(store.state.cursor));
  document.addEventListener('keydown', ({ key }) => {
    const explained = document.querySelector(':popover-open') !== null; // Escape closes that first
    if (key === 'Escape' && store.state.cursor?.pinned && !explained) store.emit('let-go');
  });
  store.subscribe(['maps'], ({ cursor }) => cursor && place(cursor), { now: false });
  store.subscribe(['found'], ({ found, cursor }) => cursor && found.status === 'none' && place(null), { now: false });
}
