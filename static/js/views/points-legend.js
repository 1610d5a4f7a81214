/** What the marks of points mean: the ramp of layers, or a sign for each role. */

import { el, fill } from '../dom.js';
import { t, whole } from '../i18n.js';
import { MARKS } from '../marks.js';
import { gradient, layerColour } from '../tints.js';
import { roleName } from './finder-bar.js';

function roles(points) {
  const used = new Set(points.map(({ role }) => role));
  return Object.entries(MARKS).filter(([role]) => used.has(role)).map(([role, { sign }]) =>
    el('span', { class: 'legend-role' }, el('span', { 'aria-hidden': 'true' }, sign), ` ${roleName(role === 'untested' ? null : role)}`));
}

/** Fills `box` for these points; empty without any. */
export function fillLegend(box, points, { finder, scheme }, layers) {
  if (!points.length || finder.colour === 'role') {
    fill(box, roles(points));
    return;
  }
  const bar = el('span', { class: 'tint-bar', 'aria-hidden': 'true' });
  bar.style.backgroundImage = gradient((place) => layerColour(scheme, place));
  fill(box, t('scatter.first_layer'), bar, t('scatter.last_layer', { n: whole(layers - 1) }));
}
