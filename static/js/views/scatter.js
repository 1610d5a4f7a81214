/** All heads by two of their scores. Listens to finder, heads, run, scheme; emits find, retry-figures. */

import { el, fill, perFrame, ref } from '../dom.js';
import { figureOf, MEASURES, missingReason, SHARES, surveyOf } from '../finder.js';
import { t, whole } from '../i18n.js';
import { readInk } from '../ink.js';
import { markPainter } from '../marks.js';
import { scatterLayout } from '../scatter-figure.js';
import { finished, siteOf } from '../select.js';
import { figureText } from '../table-columns.js';
import { scoreName } from './finder-bar.js';
import { fillLegend } from './points-legend.js';
import { mountPoints } from './points.js';
import { figuresFailed } from './retry.js';

const SMALLEST = 60; // px: a figure that is not laid out yet is smaller

function pointsOf(state) {
  const { x, y, version } = state.finder;
  const { list, order, roles } = surveyOf(state);
  const points = order.map((at) => {
    const figures = { x: figureOf(list[at], x, version), y: figureOf(list[at], y, version) };
    if (!figures.x || !figures.y) return null;
    const { layer, head } = list[at];
    return {
      layer, head, role: roles[at].name ?? 'untested', x: figures.x.value, y: figures.y.value, chance: { x: figures.x.chance, y: figures.y.chance },
    };
  });
  return points.filter(Boolean);
}

/** What stands where no plot can: why there is none, and of which score. */
function insteadOf(state, store) {
  const { heads: { status, list }, finder } = state;
  if (status === 'error') return el('div', { class: 'state-box is-problem' }, figuresFailed(store, { role: null }));
  if (status !== 'ready') return el('div', { class: 'state-box' }, el('p', {}, t('finder.loading')));
  const lacking = [...new Set([finder.x, finder.y])].filter((name) => !list.some((entry) => figureOf(entry, name, finder.version)));
  const reasons = lacking.map((name) => el('p', {}, t('scatter.lacks', { name: scoreName(name), why: t(missingReason(state, name)) })));
  const title = surveyOf(state).order.length ? 'scatter.none' : 'finder.none';
  return el('div', { class: 'state-box' }, el('p', { class: 'state-title' }, t(title)), reasons);
}

/** Mounts the scatter. */
export function mountScatter(root, store) {
  const [figure, plot, ring, text, empty] = ['', '-plot', '-chosen', '-text', '-state'].map((name) => ref(root, `scatter${name}`));
  const choices = Object.fromEntries(['x', 'y', 'colour'].map((name) => [name, ref(root, `scatter-${name}`)]));
  for (const name of ['x', 'y']) fill(choices[name], [...SHARES, ...MEASURES].map((score) => el('option', { value: score }, scoreName(score))));
  for (const [name, select] of Object.entries(choices)) select.addEventListener('change', () => store.emit('find', { [name]: select.value }));

  const points = mountPoints({ figure, plot, ring, text }, store, ({ layer, head, x, y }) => {
    const { finder } = store.state;
    return t('scatter.point', {
      place: t('finder.place', { layer, head }), x: scoreName(finder.x), x_value: figureText(finder.x, x), y: scoreName(finder.y), y_value: figureText(finder.y, y),
    });
  });

  function redraw() {
    const { state } = store;
    if (!finished(state) || state.finder.tab !== 'scatter') return;
    for (const [name, select] of Object.entries(choices)) select.value = state.finder[name];
    const size = { width: figure.clientWidth, height: figure.clientHeight };
    if (Math.min(size.width, size.height) < SMALLEST) return;
    const shown = pointsOf(state);
    const layers = siteOf(state).n_layers;
    plot.hidden = shown.length === 0;
    fillLegend(ref(root, 'scatter-legend'), shown, state, layers);
    const left = surveyOf(state).order.length - shown.length;
    empty.hidden = shown.length > 0;
    ref(root, 'scatter-foot').hidden = !shown.length;
    if (!shown.length) {
      fill(empty, insteadOf(state, store));
      points.clear();
      return;
    }
    ref(root, 'scatter-foot').textContent = t(left ? 'scatter.foot_left' : 'scatter.foot', { n: whole(shown.length), left: whole(left) });
    const ink = readInk();
    const names = { x: scoreName(state.finder.x), y: scoreName(state.finder.y) };
    const paint = markPainter(state.finder.colour, { layers, scheme: state.scheme, ink });
    points.show(scatterLayout(shown, shown.map(({ chance }) => chance), names, size, ink), shown, paint);
  }

  const again = perFrame(redraw);
  store.subscribe(['finder', 'heads', 'run', 'scheme'], again);
  new ResizeObserver(again).observe(figure);
}
