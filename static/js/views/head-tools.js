/**
 * Which head is shown, pooling and zoom.
 * Listens to run, view, preview, map; emits head, site, pool, zoom-by, zoom-out.
 */

import { el, fill, ref } from '../dom.js';
import { t } from '../i18n.js';
import { finished, shownHead, siteOf } from '../select.js';
import { mountSegments } from './segments.js';
import { siteName } from './sites.js';

const STEP = 0.5; // of the range, per press of + or −

function options(count) {
  const numbers = Array.from({ length: count }, (_, index) => el('option', { value: index }, String(index)));
  const all = ['mean', 'max'].map((value) => el('option', { value }, t(`head.all_${value}`)));
  return [...numbers, ...all];
}

const readIndex = (text) => (/^\d+$/.test(text) ? Number(text) : text);

/** Says how many weights, or units, a cell of the heat map stands for. */
export function poolingText(window, { lens, unit }) {
  if (!window) return '';
  if (!window.exact) return t('pooling.loading');
  const plain = lens === 'raw' && unit === 'token';
  const what = { what: t(unit === 'token' ? 'pooling.values' : `pooling.${unit}s`), rows: window.rowStep, cols: window.colStep };
  if (window.rowStep === 1 && window.colStep === 1) return t(plain ? 'pooling.one' : 'pooling.one_unit', what);
  return t(plain ? `pooling.${window.pool}` : `pooling.${window.pool}_units`, what);
}

/** Mounts the tools above the heat map. */
export function mountHeadTools(root, store) {
  const [site, layer, head] = ['site', 'layer', 'head'].map((name) => ref(root, name));
  layer.addEventListener('change', () => store.emit('head', { layer: readIndex(layer.value) }));
  head.addEventListener('change', () => store.emit('head', { head: readIndex(head.value) }));
  site.addEventListener('change', () => store.emit('site', { site: site.value }));
  mountSegments(ref(root, 'pool'), store, (state) => state.view.pool, (pool) => store.emit('pool', { pool }));
  ref(root, 'zoom-in').addEventListener('click', () => store.emit('zoom-by', { factor: STEP }));
  ref(root, 'zoom-out').addEventListener('click', () => store.emit('zoom-by', { factor: 1 / STEP }));
  ref(root, 'zoom-all').addEventListener('click', () => store.emit('zoom-out'));

  let built = null;
  store.subscribe(['run', 'view', 'preview'], (state) => {
    const summary = finished(state);
    const shown = siteOf(state);
    if (!summary || !shown) return;
    const key = `${summary.id}|${shown.site}`;
    if (key !== built) {
      built = key;
      fill(layer, options(shown.n_layers));
      fill(head, options(shown.n_heads));
      fill(site, summary.sites.map(({ site: name }) => el('option', { value: name }, siteName(name))));
      ref(root, 'site-label').hidden = summary.sites.length < 2;
    }
    const chosen = shownHead(state);
    layer.value = String(chosen.layer);
    head.value = String(chosen.head);
    site.value = shown.site;
    head.disabled = state.view.lens === 'rollout'; // a mean over the heads, whichever is chosen
    ref(root, 'head-top').classList.toggle('is-preview', state.preview !== null);
    const whole = state.view.rows === null && state.view.cols === null;
    ref(root, 'zoom-out').disabled = whole;
    ref(root, 'zoom-all').disabled = whole;
  });
  store.subscribe(['map', 'run', 'view'], (state) => {
    const { window } = state.map;
    const site = siteOf(state);
    ref(root, 'pooling').textContent = poolingText(window, state.view);
    const single = window?.rowStep === 1 && window.colStep === 1 && site?.row_step === 1 && site.col_step === 1;
    for (const button of ref(root, 'pool').querySelectorAll('button')) button.disabled = single; // nothing is pooled
  });
}
