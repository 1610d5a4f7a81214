/**
 * Loads what a view of all heads needs beyond their figures: the layers' reach and how alike heads are. Each is asked for
 * when its view is first open, once for each run and site; an older request is aborted. Between two texts there is no reach.
 * Answers retry-figures.
 */

import * as api from '../api.js';
import { finished, isCross, siteOf } from '../select.js';

const KINDS = {
  layers: { tabs: ['layers'], apt: (state) => !isCross(state), load: async (id, site, signal) => ({ answer: await api.getLayers(id, site, signal) }) },
  similarity: { tabs: ['alike', 'layers'], apt: () => true, load: api.getSimilarity },
};
const NONE = { status: 'none', key: null, answer: null, distances: null, error: null };

/** Follows the run, its site and the open view. */
export function controlReports(store) {
  for (const [name, { tabs, apt, load }] of Object.entries(KINDS)) {
    let fetching = new AbortController();

    const begin = async (key, id, site) => {
      fetching.abort();
      fetching = new AbortController();
      const { signal } = fetching;
      store.set({ [name]: { ...NONE, status: 'loading', key } });
      try {
        const found = await load(id, site, signal);
        if (!signal.aborted) store.set({ [name]: { ...NONE, ...found, status: 'ready', key } });
      } catch (error) {
        if (!signal.aborted) store.set({ [name]: { ...NONE, status: 'error', key, error } });
      }
    };

    const forget = () => {
      fetching.abort();
      store.set({ [name]: NONE });
    };

    store.on('retry-figures', () => {
      const { state } = store;
      const { status, key } = state[name]; // what is of another run or site is forgotten already
      if (status === 'error') begin(key, state.run.id, siteOf(state).site);
    });
    store.subscribe(['run', 'view', 'finder'], (state) => {
      const key = finished(state) ? `${state.run.id}|${siteOf(state).site}` : null;
      if (state[name].key !== null && state[name].key !== key) forget();
      if (key !== null && tabs.includes(state.finder.tab) && apt(state) && store.state[name].key !== key) begin(key, state.run.id, siteOf(state).site);
    });
  }
}
