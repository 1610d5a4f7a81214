/**
 * Keeps the address's fragment and the view equal: writes it when the view changes, reads it on load and when it changes.
 * Answers `copy-link`. Runs make history entries, views do not.
 */

import { clampView, fitsLink, formatAddress, parseAddress } from '../address.js';
import { siteOf } from '../select.js';

/** Reads the address once, then follows both sides. */
export function controlAddress(store) {
  let written = location.hash;

  function read() {
    if (location.hash === written && store.state.run.id !== null) return;
    written = location.hash;
    const address = parseAddress(location.hash);
    if (address.text !== null) store.set({ text: address.text, addSpecial: address.special, truncate: address.truncate });
    if (address.model !== null) store.set({ modelId: address.model });
    if (address.run === null) {
      if (store.state.run.id !== null) store.emit('close');
    } else if (address.run === store.state.run.id) {
      const site = siteOf(store.state);
      store.set({ view: site ? clampView(address.view, site) : address.view, preview: null });
    } else {
      store.emit('open', { id: address.run, view: address.view });
    }
  }

  function write(state) {
    const { run, view } = state;
    if (run.phase !== 'done' && run.phase !== 'active') return;
    const fragment = formatAddress(run.id, view);
    if (fragment === location.hash) return;
    const same = parseAddress(location.hash).run === run.id;
    written = fragment;
    if (same) history.replaceState(null, '', fragment);
    else history.pushState(null, '', fragment);
  }

  store.on('copy-link', async ({ withText }) => {
    const { run, view, modelId } = store.state;
    const text = run.text ?? store.state.text;
    const { add_special_tokens: special, truncate } = run.summary?.options ?? {};
    const extra = withText && fitsLink(text) ? { text, model: run.summary?.model.id ?? modelId, special, truncate } : null;
    const link = `${location.origin}${location.pathname}${formatAddress(run.id, view, extra)}`;
    try {
      await navigator.clipboard.writeText(link);
      store.set({ notice: { key: extra ? 'link.copied_text' : 'link.copied' } });
    } catch {
      store.set({ notice: { key: 'link.blocked', link } });
    }
  });

  read();
  store.subscribe(['run', 'view'], write);
  addEventListener('hashchange', read);
  addEventListener('popstate', read);
}
