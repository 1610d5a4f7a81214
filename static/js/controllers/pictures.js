/** Loads what a finished run shows: the overview of all heads, and each head's scores. Stale answers are aborted. Answers retry-figures. */

import * as api from '../api.js';
import { finished, siteOf } from '../select.js';

const NO_HEADS = { status: 'none', list: [], bins: [], error: null };
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
    store.set({ heads: { ...NO_HEADS, status: 'loading' } });
    try {
      const { heads: list, bins: { [site]: bins = [] } } = await api.getHeads(id, site);
      if (scored === `${id}|${site}`) store.set({ heads: { ...NO_HEADS, status: 'ready', list, bins } });
    } catch (error) {
      if (scored === `${id}|${site}`) store.set({ heads: { ...NO_HEADS, status: 'error', error } });
    }
  }

  function forget() {
    fetching.abort();
    shown = null;
    scored = null;
    store.set({ overview: NO_OVERVIEW, heads: NO_HEADS });
  }

  store.on('retry-figures', () => {
    const { state } = store;
    const summary = finished(state);
    if (!summary) return;
    const { site } = siteOf(state);
    if (state.heads.status === 'error') loadHeads(summary.id, site);
    if (state.overview.status === 'error') loadOverview(summary.id, site, state.view.pool);
  });

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
