/** The colour scale with its numbers, and the sign for masked. Listens to view, scheme, run, map. */

import { el, fill, ref } from '../dom.js';
import { t } from '../i18n.js';
import { hidesCells } from '../masks.js';
import { colourOf, DECADES, position, weightAt } from '../ramp.js';
import { maskOf, shownHead, siteOf } from '../select.js';

const QUARTERS = [0, 0.25, 0.5, 0.75, 1];
const TICKS = { sqrt: [0, 0.1, 0.4, 1], linear: QUARTERS, row: [0, 0.5, 1], log: [0, weightAt(0.5, 'log'), 1] };
const STOPS = 24;

/** A tick's number: of the head's largest value where that is not 1, and of the row's largest on the scale of rows. */
function tickText(share, scale, largest) {
  if (scale === 'row') return t('legend.percent', { n: share * 100 });
  if (share === 0 && scale === 'log') return `≤${(10 ** -DECADES * largest).toExponential(largest === 1 ? 0 : 1)}`;
  return String(Number((share * largest).toPrecision(3)));
}

/** Mounts the legend. */
export function mountLegend(root, store) {
  const legend = ref(root, 'legend');
  const bar = el('div', { class: 'legend-bar' });
  const ticks = el('div', { class: 'legend-ticks' });
  const label = el('span', { class: 'legend-label' });
  const hidden = el('span', {});
  const masked = el('span', { class: 'legend-masked' }, el('span', { class: 'swatch', 'aria-hidden': 'true' }), hidden);
  fill(legend, label, el('div', { class: 'legend-scale' }, bar, ticks), masked);
  store.subscribe(['view', 'scheme', 'map'], ({ view, scheme, map }) => {
    const stops = Array.from({ length: STOPS + 1 }, (_, at) => colourOf(scheme, Math.round((at / STOPS) * 255)));
    bar.style.backgroundImage = `linear-gradient(to right, ${stops.join(', ')})`;
    label.textContent = t(view.scale === 'row' ? 'legend.of_row' : `legend.${view.lens}`);
    hidden.textContent = t(view.lens === 'sink_free' ? 'legend.hidden' : 'legend.masked');
    fill(ticks, TICKS[view.scale].map((share) => {
      const tick = el('span', {}, tickText(share, view.scale, map.window?.largest ?? 1));
      tick.style.left = `${position(share, view.scale) * 100}%`;
      return tick;
    }));
  });
  store.subscribe(['run', 'view', 'preview'], (state) => {
    masked.hidden = !siteOf(state) || !(state.view.lens === 'sink_free' || hidesCells(maskOf(siteOf(state), shownHead(state).layer)));
  });
}
