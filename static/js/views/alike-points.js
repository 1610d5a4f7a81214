/** Heads as points where near means alike. Listens to similarity, finder, heads, scheme. */

import { headOf, isComparable, placesLayout } from '../alike.js';
import { perFrame, ref } from '../dom.js';
import { roleOf, surveyOf } from '../finder.js';
import { t } from '../i18n.js';
import { readInk } from '../ink.js';
import { markPainter } from '../marks.js';
import { siteOf } from '../select.js';
import { roleName } from './finder-bar.js';
import { fillLegend } from './points-legend.js';
import { mountPoints } from './points.js';

const SMALLEST = 60; // px: a figure that is not laid out yet is smaller

/** Mounts the layout of heads. */
export function mountAlikePoints(root, store) {
  const [figure, plot, ring, text] = ['alike-points', 'alike-plot', 'alike-chosen', 'alike-points-text'].map((name) => ref(root, name));
  const points = mountPoints({ figure, plot, ring, text }, store, ({ layer, head, role }) =>
    `${t('finder.place', { layer, head })} · ${roleName(role === 'untested' ? null : role)}`);

  function redraw() {
    const { state } = store;
    const { similarity, finder, scheme } = state;
    if (!isComparable(similarity) || finder.tab !== 'alike' || finder.view !== 'points') return;
    const size = { width: figure.clientWidth, height: figure.clientHeight };
    if (Math.min(size.width, size.height) < SMALLEST) return;
    const { n_heads: heads, n_layers: layers } = siteOf(state);
    const { list } = surveyOf(state);
    const shown = similarity.answer.positions.map(([x, y], index) => ({
      ...headOf(index, heads), x, y, role: roleOf(list[index], finder.threshold).name ?? 'untested',
    }));
    const ink = readInk();
    fillLegend(ref(root, 'alike-points-legend'), shown, state, layers);
    points.show(placesLayout(shown, size, ink), shown, markPainter(finder.colour, { layers, scheme, ink }));
  }

  const again = perFrame(redraw);
  store.subscribe(['similarity', 'finder', 'heads', 'scheme'], again);
  new ResizeObserver(again).observe(figure);
}
