/** Mass against distance as a small picture: a bar for each bin, a line where uniform attention would be. Knows no layers. */

import { el } from '../dom.js';
import { fixedText, t, whole } from '../i18n.js';

const LABELS = 6; // on the scale at most

const lastOf = ([from, stop]) => (stop - 1 > from ? stop - 1 : from);

/** A bin in words, with its share and that of uniform attention. */
function words(bin, share, uniform) {
  const given = { from: whole(bin[0]), to: whole(lastOf(bin)), n: share === null ? '' : fixedText(share, 3), uniform: uniform === null ? '' : fixedText(uniform, 3) };
  const key = share === null ? 'uniform' : uniform === null ? 'share' : 'bin';
  return t(`layers.${key}${lastOf(bin) > bin[0] ? '' : '_one'}`, given);
}

/** The picture of one curve; `shares` or `uniform` may be null. The highest bar of all pictures is `largest`. */
export function curve(shares, uniform, { bins, largest }) {
  const bars = bins.map((bin, at) => {
    const share = shares?.[at] ?? null;
    const even = uniform?.[at] ?? null;
    const slot = el('span', { class: 'curve-slot', title: words(bin, share, even) });
    if (share !== null) {
      const bar = el('span', { class: 'curve-bar' });
      bar.style.height = `${(100 * share) / largest}%`;
      slot.append(bar);
    }
    if (even !== null) {
      const tick = el('span', { class: 'curve-tick' });
      tick.style.bottom = `${(100 * even) / largest}%`;
      slot.append(tick);
    }
    return slot;
  });
  return el('span', { class: 'curve', role: 'img', 'aria-label': bins.map((bin, at) => words(bin, shares?.[at] ?? null, uniform?.[at] ?? null)).join('; ') }, bars);
}

/** The distances that the bins begin at, as many as can be read. */
export function scaleLine(bins) {
  const every = Math.ceil(bins.length / LABELS);
  return el('span', { class: 'curve-scale', 'aria-hidden': 'true' }, bins.map(([from], at) => el('span', {}, at % every === 0 ? String(from) : '')));
}
