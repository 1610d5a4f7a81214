/** The colour scale with its numbers, and the sign for masked. Listens to view, scheme, run. */

import { el, fill, ref } from '../dom.js';
import { t } from '../i18n.js';
import { hidesCells } from '../masks.js';
import { colourOf, position } from '../ramp.js';
import { maskOf, shownHead, siteOf } from '../select.js';

const TICKS = { sqrt: [0, 0.1, 0.4, 1], linear: [0, 0.25, 0.5, 0.75, 1] };
const STOPS = 24;

/** Mounts the legend. */
export function mountLegend(root, store) {
  const legend = ref(root, 'legend');
  const bar = el('div', { class: 'legend-bar' });
  const ticks = el('div', { class: 'legend-ticks' });
  const masked = el('span', { class: 'legend-masked' }, el('span', { class: 'swatch', 'aria-hidden': 'true' }), t('legend.masked'));
  fill(legend, el('span', { class: 'legend-label' }, t('legend.weight')), el('div', { class: 'legend-scale' }, bar, ticks), masked);
  store.subscribe(['view', 'scheme'], ({ view, scheme }) => {
    const stops = Array.from({ length: STOPS + 1 }, (_, at) => colourOf(scheme, Math.round((at / STOPS) * 255)));
    bar.style.backgroundImage = `linear-gradient(to right, ${stops.join(', ')})`;
    fill(ticks, TICKS[view.scale].map((weight) => {
      const tick = el('span', {}, String(weight));
      tick.style.left = `${position(weight, view.scale) * 100}%`;
      return tick;
    }));
  });
  store.subscribe(['run', 'view', 'preview'], (state) => {
    masked.hidden = !siteOf(state) || !hidesCells(maskOf(siteOf(state), shownHead(state).layer));
  });
}
