/**
 * Which head is shown, pooling and zoom.
 * Listens to run, view, preview, map; emits head, site, pool, zoom-by, zoom-out.
 */

import { readIndex } from '../address-fields.js';
import { el, fill, ref } from '../dom.js';
import { t } from '../i18n.js';
import { finished, shownHead, siteOf } from '../select.js';
import { indexOptions, mountZoomButtons, showChoice } from './head-choice.js';
import { mountSegments } from './segments.js';
import { siteName } from './sites.js';

/** Says how many weights, or units, a cell of the heat map stands for. */
export function poolingText(window, { lens, unit }) {
  if (!window) return '';
  if (!window.exact) return t('pooling.loading');
  const plain = lens === 'raw' && unit === 'token';
  const what = { what: t(unit === 'token' ? 'pooling.values' : `pooling.${unit}s`), rows: window.rowStep, cols: window.colStep };
  if (window.rowStep === 1 && window.colStep === 1) return t(plain ? 'pooling.one' : `pooling.one_${unit}`);
  return t(plain ? `pooling.${window.pool}` : `pooling.${window.pool}_units`, what);
}

/** Mounts the tools above the heat map. */
export function mountHeadTools(root, store) {
  const [site, layer, head] = ['site', 'layer', 'head'].map((name) => ref(root, name));
  layer.addEventListener('change', () => store.emit('head', { layer: readIndex(layer.value) }));
  head.addEventListener('change', () => store.emit('head', { head: readIndex(head.value) }));
  site.addEventListener('change', () => store.emit('site', { site: site.value }));
  mountSegments(ref(root, 'pool'), store, (state) => state.view.pool, (pool) => store.emit('pool', { pool }));
  const showZoom = mountZoomButtons(root, store);

  let built = null;
  store.subscribe(['run', 'view', 'preview'], (state) => {
    const summary = finished(state);
    const shown = siteOf(state);
    if (!summary || !shown) return;
    const key = `${summary.id}|${shown.site}`;
    if (key !== built) {
      built = key;
      fill(layer, indexOptions(shown.n_layers));
      fill(head, indexOptions(shown.n_heads));
      fill(site, summary.sites.map(({ site: name }) => el('option', { value: name }, siteName(name))));
      ref(root, 'site-label').hidden = summary.sites.length < 2;
    }
    showChoice({ layer, head }, shownHead(state));
    site.value = shown.site;
    head.disabled = state.view.lens === 'rollout'; // a mean over the heads, whichever is chosen
    ref(root, 'head-top').classList.toggle('is-preview', state.preview !== null);
    showZoom(state.view);
  });
  store.subscribe(['map', 'run', 'view'], (state) => {
    const { window } = state.map;
    const site = siteOf(state);
    ref(root, 'pooling').textContent = state.map.status === 'error' && window ? t('pooling.coarse') : poolingText(window, state.view);
    const single = window?.rowStep === 1 && window.colStep === 1 && site?.row_step === 1 && site.col_step === 1;
    for (const button of ref(root, 'pool').querySelectorAll('button')) button.disabled = single; // nothing is pooled
  });
}
