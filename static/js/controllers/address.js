/**
 * Keeps the address's fragment and the view equal: writes it when the view changes, reads it on load and when it changes.
 * Answers `copy-link`, emits `link-read`. Runs make history entries, but not one that nobody asked for, and chosen heads do
 * (trail.js says when). An address that names nothing returns to the last view; where its run is gone, emits `begin-anew`.
 */

import { clampView, fitsLink, formatAddress, parseAddress } from '../address.js';
import { debounce } from '../dom.js';
import { clampFinder, finderFields, readFigures, readFinder } from '../finder-address.js';
import { inputsOfRun } from '../inputs.js';
import { cellField, cellOf } from '../kept-cell.js';
import { linkFields, linksText, readLinks, readSides } from '../links.js';
import { forgetView, keepView, keptView } from '../recent.js';
import { sameHead } from '../select.js';
import { createTrail } from '../trail.js';
import { copyLink } from './copy.js';

const SOON = 150; // ms after the last change of what the finder shows

/** Reads the address once, then follows both sides. */
export function controlAddress(store) {
  const trail = createTrail();
  const kept = location.hash ? null : keptView();
  if (kept) trail.replace(kept);
  let written = location.hash;
  let reading = false; // what is written meanwhile is the address's own view, perhaps clamped
  let last = null; // {run, place} of what was written of a finished run

  function read() {
    if (location.hash === written && store.state.run.id !== null) return;
    reading = true;
    take(location.hash);
    reading = false;
  }

  function take(fragment) {
    written = fragment;
    const address = parseAddress(fragment);
    const pinned = cellOf(fragment, address);
    const beside = besideOf(fragment, address); // told before the view is set, which writes the address
    if (address.text !== null) {
      const { text, pair, target, implementation, truncate } = address;
      store.set({ text, pair, target, implementation, truncate, addSpecial: address.special });
    }
    const { models } = store.state;
    const known = models.status !== 'ready' || models.list.some(({ id }) => id === address.model);
    if (address.model !== null && known) store.set({ modelId: address.model });
    if (address.run === null) {
      if (store.state.run.id !== null) store.emit('close');
      store.set(beside());
    } else if (address.run === store.state.run.id) {
      const sites = store.state.run.summary?.sites ?? [];
      const site = sites.find((one) => one.site === address.view.site) ?? sites[0];
      const view = site ? clampView(address.view, site) : address.view;
      const run = { ...store.state.run, carried: address.text };
      const also = beside();
      const finder = site ? clampFinder(also.finder, site) : also.finder;
      store.set({ ...also, finder, run, view, pinned, preview: null, hoverToken: null, cursor: null });
    } else {
      store.emit('open', { id: address.run, view: address.view, carried: address.text });
      store.set({ ...beside(), pinned }); // once the run before is off the screen: links that do not say of which texts they are take this one's
    }
    store.emit('link-read', { fragment, run: address.run !== null });
  }

  /** Gives a patch of the state as it then is: what a fragment says of links and, with a run, of the finder. */
  function besideOf(fragment, { run, view }) {
    const [list, sides, finder, on] = [readLinks(fragment), readSides(fragment), readFinder(fragment), readFigures(fragment)];
    const { state } = store;
    const same = run !== null && run === state.run.id && view.site === state.view.site
      && linksText(list) === linkFields(state).pairs && sides === readSides(`sides=${linkFields(state).sides}`);
    const last = linksText(list) === linksText(state.pairs.list) ? state.pairs.last : null;
    const links = same ? {} : { list, sides, last };
    return () => {
      const { pairs, reference } = store.state; // links that are shown know more than their indices, and stay
      return { pairs: { ...pairs, ...links }, ...(run !== null ? { finder, reference: { ...reference, on } } : {}) };
    };
  }

  const fieldsBeside = (state) => ({ ...finderFields(state), ...linkFields(state), ...cellField(state) });

  function write(state) {
    const { run, view } = state;
    if (run.phase !== 'done' && run.phase !== 'active') return;
    const fragment = formatAddress(run.id, view, fieldsBeside(state));
    const place = [view.site, view.layer, view.head].join('|');
    const walked = !reading && !sameHead(state.unasked, view) && run.phase === 'done' && last?.run === run.id && last.place !== place;
    last = run.phase === 'done' ? { run: run.id, place } : null;
    keepView(fragment);
    if (fragment === location.hash) return;
    const same = parseAddress(location.hash).run === run.id;
    written = fragment;
    if (walked) trail.walk(fragment);
    else if (same || run.first) trail.replace(fragment);
    else trail.push(fragment);
  }

  /** The run of the last view is gone, and nobody asked for it: the page begins as on a first visit. */
  function beginAnew({ run }) {
    if (run.phase !== 'gone' || location.hash !== kept) return;
    forgetView();
    trail.replace(`${location.pathname}${location.search}`);
    written = '';
    store.emit('close');
    store.emit('begin-anew');
  }

  store.on('copy-link', ({ withText }) => {
    const { run, view } = store.state;
    const inputs = inputsOfRun(store.state);
    const { add_special_tokens: special, truncate } = run.summary.options;
    const { id: model, implementation } = run.summary.model;
    const extra = withText && fitsLink(inputs) ? { ...inputs, model, implementation, special, truncate } : null;
    const fragment = formatAddress(run.id, view, fieldsBeside(store.state), extra);
    copyLink(store, `${location.pathname}${fragment}`, extra ? 'link.copied_text' : 'link.copied');
  });

  read();
  store.subscribe(['run', 'view', 'pairs', 'pinned', 'units'], write);
  if (kept) store.subscribe(['run'], beginAnew, { now: false });
  store.subscribe(['finder', 'reference'], debounce(() => write(store.state), SOON), { now: false }); // a slider changes it often, and browsers limit writing
  addEventListener('hashchange', read);
  addEventListener('popstate', ({ state }) => {
    trail.popped(state);
    read();
  });
}
