/** Loads the units that the heat map's rows and columns count, where these are not tokens. Answers retry-map. */

import * as api from '../api.js';
import { finished, shownSides, unitsKey } from '../select.js';

const NO_UNITS = { status: 'none', key: null, rows: null, cols: null, error: null };
const KEPT = 8; // sides of runs

/** Follows run and view. */
export function controlUnits(store) {
  const cache = new Map(); // `run|unit|side` → promise of units

  function unitsOf(id, unit, side) {
    const key = [id, unit, side].join('|');
    if (!cache.has(key)) {
      cache.set(key, api.getUnits(id, unit, side));
      if (cache.size > KEPT) cache.delete(cache.keys().next().value);
      cache.get(key).catch(() => cache.delete(key));
    }
    return cache.get(key);
  }

  /** Ranges of a link that no longer fit are let go. */
  function show(key, rows, cols) {
    const { view } = store.state;
    const fits = (range, list) => !range || range[1] <= list.length;
    const ranges = fits(view.rows, rows) && fits(view.cols, cols) ? {} : { view: { ...view, rows: null, cols: null } };
    store.set({ units: { status: 'ready', key, rows, cols, error: null }, ...ranges });
  }

  async function load(key, id, unit, sides) {
    store.set({ units: { ...NO_UNITS, status: 'loading', key } });
    try {
      const [rows, cols] = await Promise.all([unitsOf(id, unit, sides.rows), unitsOf(id, unit, sides.cols)]);
      if (store.state.units.key === key) show(key, rows, cols);
    } catch (error) {
      if (store.state.units.key === key) store.set({ units: { ...NO_UNITS, status: 'error', key, error } });
    }
  }

  function want(state) {
    if (!finished(state) || state.view.unit === 'token') {
      if (state.units.status !== 'none') store.set({ units: NO_UNITS });
      return;
    }
    const key = unitsKey(state);
    if (state.units.key !== key) load(key, state.run.id, state.view.unit, shownSides(state));
  }

  store.on('retry-map', () => {
    if (store.state.units.status === 'error') store.set({ units: NO_UNITS });
    want(store.state);
  });
  store.subscribe(['run', 'view'], want);
}
