/** The two runs: which ones, from the address or the browser's list, and their heads' figures. Answers choose, retry, retry-heads. */

import * as api from '../api.js';
import { forgetRun, recentRuns } from '../recent.js';
import { headBeside } from '../select.js';
import { parseCompare } from './address.js';
import { NO_SIDE, runOf, SIDES, siteOf } from './state.js';

const last = (count) => count - 1;
const PLACE = ['site', 'layer', 'head'];
const neighbour = (head) => (Number.isInteger(head) && head > 0 ? head - 1 : 1);

/**
 * B's place with what the address leaves open taken from A, so that two texts are compared on the same head; but not a head
 * of a run with itself.
 */
function completed({ a, b }, sameRun) {
  const filled = Object.fromEntries(PLACE.map((part) => [part, b[part] ?? a[part]]));
  const sameHead = sameRun && filled.site === a.site && (filled.layer ?? 0) === (a.layer ?? 0);
  return sameHead && b.head === null ? { ...filled, head: neighbour(a.head) } : filled;
}

/** The place as it exists in this run. */
function fitted(view, summary) {
  const site = summary.sites.find((one) => one.site === view.site) ?? summary.sites[0];
  const index = (value, count) => (Number.isInteger(value) ? Math.min(value, last(count)) : value ?? 0);
  const layer = index(view.layer, site.n_layers);
  return { site: site.site, layer, head: headBeside(layer, index(view.head, site.n_heads)) };
}

/** Connects the choosers with the server; the address is read once here. */
export function controlRuns(store) {
  const asked = { a: 0, b: 0 };
  const stop = { a: () => {}, b: () => {} };
  const patch = (side, fields) => store.patch('sides', { [side]: { ...store.state.sides[side], ...fields } });

  function take(side, ticket, summary) {
    if (summary.status === 'done') {
      store.patch('view', { [side]: fitted(store.state.view[side], summary) });
      patch(side, { phase: 'done', summary });
      return;
    }
    if (summary.status === 'failed' || summary.status === 'cancelled') {
      patch(side, { phase: 'error', error: new api.ApiError(`run_${summary.status}`, '') });
      return;
    }
    patch(side, { phase: 'active', progress: summary.progress });
    const again = () => ticket === asked[side] && open(side, summary.id);
    stop[side] = api.followRun(summary.id, (name, data) => {
      if (name !== 'progress') again();
      else if (ticket === asked[side]) patch(side, { progress: data.progress });
    }, () => setTimeout(again, 500));
  }

  async function open(side, id) {
    asked[side] += 1;
    const ticket = asked[side];
    stop[side]();
    patch(side, { ...NO_SIDE, phase: 'loading', id });
    try {
      const summary = await api.getRun(id);
      if (ticket === asked[side]) take(side, ticket, summary);
    } catch (error) {
      if (ticket !== asked[side]) return;
      const gone = error.code === 'run_gone';
      if (gone) forgetRun(id);
      store.set({ recent: recentRuns() });
      patch(side, { phase: gone ? 'gone' : 'error', error });
    }
  }

  async function loadHeads(side, id, site, key) {
    store.patch('heads', { [side]: { key, status: 'loading', list: [] } });
    const keep = (fields) => store.state.heads[side]?.key === key && store.patch('heads', { [side]: { key, list: [], ...fields } });
    try {
      const { heads } = await api.getHeads(id, site);
      keep({ status: 'ready', list: heads });
    } catch {
      keep({ status: 'error' });
    }
  }

  store.on('choose', ({ side, id }) => {
    store.set({ cursor: null, view: { ...store.state.view, rows: null, cols: null } });
    open(side, id);
  });
  store.on('retry', ({ side }) => open(side, store.state.sides[side].id));
  store.on('retry-heads', () => {
    store.set({ heads: Object.fromEntries(SIDES.map((side) => [side, store.state.heads[side]?.status === 'error' ? null : store.state.heads[side]])) });
  });
  store.subscribe(['sides', 'view', 'heads'], () => {
    for (const side of SIDES) {
      const run = runOf(store.state, side);
      const key = run && `${run.id}|${siteOf(store.state, side).site}`;
      if (key && store.state.heads[side]?.key !== key) loadHeads(side, run.id, siteOf(store.state, side).site, key);
    }
  });

  /**
   * Opens what the address names; what it leaves open is the newest run, and the one before it. The runs before it are put
   * away in the same step as the view is set: the address must not be written of the one with the other.
   */
  function begin() {
    const { ids, view } = parseCompare(location.hash);
    const recent = recentRuns();
    store.set({ recent, view, cursor: null, sides: { a: NO_SIDE, b: NO_SIDE } });
    const others = recent.map(({ id }) => id).filter((id) => id !== ids.a && id !== ids.b);
    const a = ids.a ?? others.shift() ?? ids.b;
    const b = ids.b ?? others.shift() ?? a;
    store.patch('view', { b: completed(view, a === b) });
    if (a) open('a', a);
    if (b) open('b', b);
  }
  begin();
  return begin;
}
