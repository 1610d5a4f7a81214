/** Loads what a finished run shows: the overview of all heads, and each head's scores. Stale answers are aborted. */

import * as api from '../api.js';
import { finished, siteOf } from '../select.js';

const NO_OVERVIEW = { status: 'none', pool: null, shape: null, cells: null, error: null };

/** Follows the run, its site and the pooling. */
export function controlPictures(store) {
  let shown = null; // "run|site|pool" of the overview that is loaded or on its way
  let scored = null; // "run|site" of the head scores
  let fetching = new AbortController();

  async function loadOverview(id, site, pool) {
    fetching.abort();
    fetching = new AbortController();
    const { signal } = fetching;
    store.patch('overview', { ...(store.state.overview.status === 'ready' ? {} : NO_OVERVIEW), status: 'loading' });
    try {
      const { shape, data } = await api.getOverview(id, site, pool, signal);
      if (!signal.aborted) store.set({ overview: { status: 'ready', pool, shape, cells: data, error: null } });
    } catch (error) {
      if (!signal.aborted) store.set({ overview: { ...NO_OVERVIEW, status: 'error', error } });
    }
  }

  async function loadHeads(id, site) {
    store.set({ heads: { status: 'loading', list: [], bins: [] } });
    try {
      const { heads: list, bins: { [site]: bins = [] } } = await api.getHeads(id, site);
      if (scored === `${id}|${site}`) store.set({ heads: { status: 'ready', list, bins } });
    } catch {
      if (scored === `${id}|${site}`) store.set({ heads: { status: 'error', list: [], bins: [] } });
    }
  }

  function forget() {
    fetching.abort();
    shown = null;
    scored = null;
    store.set({ overview: NO_OVERVIEW, heads: { status: 'none', list: [], bins: [] } });
  }

  store.subscribe(['run', 'view'], (state) => {
    const summary = finished(state);
    if (!summary) {
      if (shown) forget();
      return;
    }
    const { site } = siteOf(state);
    const { pool } = state.view;
    if (scored !== `${summary.id}|${site}`) {
      if (shown) forget();
      scored = `${summary.id}|${site}`;
      loadHeads(summary.id, site);
    }
    if (shown !== `${summary.id}|${site}|${pool}`) {
      shown = `${summary.id}|${site}|${pool}`;
      loadOverview(summary.id, site, pool);
    }
  });
}
