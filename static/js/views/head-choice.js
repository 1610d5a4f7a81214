/** What the choosers of a layer and of a head offer, and the zoom buttons beside them: the same on every page with a heat map. */

import { el, ref } from '../dom.js';
import { t } from '../i18n.js';

const STEP = 0.5; // of the range, per press of + or −

/** Options for so many layers or heads: each of them, then all together. */
export function indexOptions(count) {
  const numbers = Array.from({ length: count }, (_, index) => el('option', { value: index }, String(index)));
  return [...numbers, ...['mean', 'max'].map((value) => el('option', { value }, t(`head.all_${value}`)))];
}

/** Shows what is chosen. Over all layers no single head can be: it says why, and offers all of them. */
export function showChoice({ layer, head }, chosen) {
  const single = Number.isInteger(chosen.layer);
  for (const option of head.options) option.disabled = !single && !['mean', 'max'].includes(option.value);
  head.title = single ? '' : t('head.over_layers');
  [layer.value, head.value] = [String(chosen.layer), String(chosen.head)];
}

/** Mounts + − and "whole", which emit zoom-by and zoom-out. Gives a function of the view's ranges that tells which can be pressed. */
export function mountZoomButtons(root, store) {
  const [closer, wider, all] = ['zoom-in', 'zoom-out', 'zoom-all'].map((name) => ref(root, name));
  closer.addEventListener('click', () => store.emit('zoom-by', { factor: STEP }));
  wider.addEventListener('click', () => store.emit('zoom-by', { factor: 1 / STEP }));
  all.addEventListener('click', () => store.emit('zoom-out'));
  return ({ rows, cols }, ready = true) => {
    const whole = rows === null && cols === null;
    wider.disabled = whole;
    all.disabled = whole;
    closer.disabled = !ready;
  };
}
