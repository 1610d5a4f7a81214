/**
 * Keeps the address's fragment and the view equal: writes it when the view changes, reads it on load and when it changes.
 * Answers `copy-link`. Runs make history entries; views do not, nor does a run that nobody asked for.
 */

import { clampView, fitsLink, formatAddress, parseAddress } from '../address.js';
import { debounce } from '../dom.js';
import { finderFields, readFinder } from '../finder-address.js';
import { inputsOfRun } from '../inputs.js';
import { linksText, readLinks } from '../links.js';

const SOON = 150; // ms after the last change of what the finder shows

/** Reads the address once, then follows both sides. */
export function controlAddress(store) {
  let written = location.hash;

  function read() {
    if (location.hash === written && store.state.run.id !== null) return;
    written = location.hash;
    const address = parseAddress(location.hash);
    if (address.run !== null) store.set({ finder: readFinder(location.hash) });
    readMarks();
    if (address.text !== null) {
      const { text, pair, target, implementation, truncate } = address;
      store.set({ text, pair, target, implementation, truncate, addSpecial: address.special });
    }
    if (address.model !== null) store.set({ modelId: address.model });
    if (address.run === null) {
      if (store.state.run.id !== null) store.emit('close');
    } else if (address.run === store.state.run.id) {
      const sites = store.state.run.summary?.sites ?? [];
      const site = sites.find((one) => one.site === address.view.site) ?? sites[0];
      store.set({ view: site ? clampView(address.view, site) : address.view, preview: null, hoverToken: null, cursor: null });
    } else {
      store.emit('open', { id: address.run, view: address.view });
    }
  }

  function readMarks() {
    const list = readLinks(location.hash);
    if (linksText(list) !== linksText(store.state.pairs.list)) store.patch('pairs', { list, sides: null, last: null });
  }

  const beside = ({ finder, pairs }) => ({ ...finderFields(finder), pairs: linksText(pairs.list) });

  function write(state) {
    const { run, view } = state;
    if (run.phase !== 'done' && run.phase !== 'active') return;
    const fragment = formatAddress(run.id, view, beside(state));
    if (fragment === location.hash) return;
    const same = parseAddress(location.hash).run === run.id;
    written = fragment;
    if (same || run.first) history.replaceState(null, '', fragment);
    else history.pushState(null, '', fragment);
  }

  store.on('copy-link', async ({ withText }) => {
    const { run, view } = store.state;
    const inputs = inputsOfRun(store.state);
    const { add_special_tokens: special, truncate } = run.summary.options;
    const { id: model, implementation } = run.summary.model;
    const extra = withText && fitsLink(inputs) ? { ...inputs, model, implementation, special, truncate } : null;
    const link = `${location.origin}${location.pathname}${formatAddress(run.id, view, beside(store.state), extra)}`;
    try {
      await navigator.clipboard.writeText(link);
      store.set({ notice: { key: extra ? 'link.copied_text' : 'link.copied' } });
    } catch {
      store.set({ notice: { key: 'link.blocked', link } });
    }
  });

  read();
  store.subscribe(['run', 'view', 'pairs'], write);
  store.subscribe(['finder'], debounce(() => write(store.state), SOON), { now: false }); // a slider changes it often, and browsers limit writing
  addEventListener('hashchange', read);
  addEventListener('popstate', read);
}
