/** Both colour scales with their numbers: weights from 0 to 1, differences from B through 0 to A; and the sign for masked. */

import { el, fill, ref } from '../dom.js';
import { t } from '../i18n.js';
import { colourOf, position } from '../ramp.js';
import { placeOf, signedStops } from './scale.js';

const TICKS = { sqrt: [0, 0.1, 0.4, 1], linear: [0, 0.5, 1] };
const SIGNED = { sqrt: [-1, -0.4, -0.1, 0, 0.1, 0.4, 1], linear: [-1, -0.5, 0, 0.5, 1] };
const SMALLEST = 0.1; // a tick that has no room on a phone
const STOPS = 24;

const signed = (value) => (value === 0 ? '0' : `${value > 0 ? '+' : '−'}${Math.abs(value)}`);

function ticks(values, place, text) {
  return values.map((value) => {
    const tick = el('span', { class: Math.abs(value) === SMALLEST ? 'tick-small' : null }, text(value));
    tick.style.left = `${place(value) * 100}%`;
    return tick;
  });
}

/** Mounts the legend. */
export function mountLegend(root, store) {
  const [weight, difference] = [0, 1].map(() => ({ bar: el('div', { class: 'legend-bar' }), ticks: el('div', { class: 'legend-ticks' }) }));
  fill(ref(root, 'legend'),
    el('span', { class: 'legend-part' }, el('span', { class: 'legend-label' }, t('legend.weight')), el('div', { class: 'legend-scale' }, weight.bar, weight.ticks)),
    el('span', { class: 'legend-part legend-difference' }, el('span', { class: 'legend-label' }, t('compare.more_b')),
      el('div', { class: 'legend-scale legend-signed' }, difference.bar, difference.ticks), el('span', { class: 'legend-label' }, t('compare.more_a'))),
    el('span', { class: 'legend-masked' }, el('span', { class: 'swatch', 'aria-hidden': 'true' }), t('compare.legend_masked')));
  store.subscribe(['view', 'scheme'], ({ view, scheme }) => {
    const stops = Array.from({ length: STOPS + 1 }, (_, at) => colourOf(scheme, Math.round((at / STOPS) * 255)));
    weight.bar.style.backgroundImage = `linear-gradient(to right, ${stops.join(', ')})`;
    difference.bar.style.backgroundImage = `linear-gradient(to right, ${signedStops(scheme).join(', ')})`;
    fill(weight.ticks, ticks(TICKS[view.scale], (value) => position(value, view.scale), String));
    fill(difference.ticks, ticks(SIGNED[view.scale], (value) => (placeOf(value, view.scale) + 1) / 2, signed));
  });
}
