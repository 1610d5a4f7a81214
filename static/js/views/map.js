/**
 * The chosen head as a Plotly heat map that sharpens on zoom. Draws only the window of the head and range now wanted,
 * so nothing stale stays. Answers show-head. Listens to map, run, view, preview, cursor, scheme, plotlyWanted; emits cursor, token, zoom….
 */

import { perFrame, ref } from '../dom.js';
import { t } from '../i18n.js';
import { readInk } from '../ink.js';
import { layoutOf, traceOf } from '../map-figure.js';
import { frameOf } from '../map-frame.js';
import { rectOf } from '../map-geometry.js';
import { hidesCells } from '../masks.js';
import { keptCell, readCell } from '../kept-cell.js';
import { draw, loadPlotly } from '../plotly.js';
import { finished, isCross, mapAxes, mapKey, maskOf, placeOf, shownHead, siteOf } from '../select.js';
import { cellAt } from '../window.js';
import { outward, setBox } from './box.js';
import { followSize } from './figure-size.js';
import { listenToPointer } from './map-pointer.js';
import { keepHeight } from './steady.js';

const WIDE = matchMedia('(min-width: 1100px)');
const CALM = matchMedia('(prefers-reduced-motion: reduce)');

/** Where the head lies under the overview, a choice up there scrolls down to it. */
function bringIntoView(section) {
  if (WIDE.matches) return;
  section.scrollIntoView({ behavior: CALM.matches ? 'instant' : 'smooth', block: 'start' });
}

/** The row and the column that have a label whatever others have: those of the chosen token and of the kept cell. */
function chosenOf(state) {
  const kept = keptCell(state);
  const { token, dir } = state.view;
  const of = (axis, own) => (token !== null && dir === own ? placeOf(state, axis, token) : null);
  return { rows: of('rows', 'row') ?? kept?.row ?? null, cols: of('cols', 'col') ?? kept?.col ?? null };
}

/** Mounts the heat map. */
export function mountMap(root, store) {
  const figure = ref(root, 'figure');
  const plot = ref(root, 'plot');
  const hatch = ref(root, 'hatch');
  let plotly = null;
  let place = null;

  function clear() {
    place = null;
    plot.hidden = true;
    setBox(hatch, null);
    mark(store.state);
  }

  async function redraw() {
    const { state } = store;
    const window = state.map.key === mapKey(state) ? state.map.window : null;
    if (!plotly || !finished(state) || !window) {
      clear();
      return;
    }
    const { figure: size } = state;
    if (!size) return;
    const tokens = mapAxes(state);
    const names = isCross(state) ? { query: t('figure.target'), key: t('figure.source') } : { query: t('figure.query'), key: t('figure.key') };
    place = frameOf(state).place;
    const ink = readInk();
    plot.hidden = false;
    setBox(hatch, (state.view.lens === 'sink_free' || hidesCells(maskOf(siteOf(state), shownHead(state).layer))) ? { x: place.left, y: place.top, width: place.width, height: place.height } : null);
    const trace = traceOf(window, state.scheme, state.view.scale);
    await draw(plotly, plot, [trace], layoutOf(place, size, tokens, names, ink, chosenOf(state)));
    plot.dataset.key = state.map.key;
    plot.dataset.exact = String(window.exact);
    mark(store.state);
  }

  function mark(state) {
    const { view, map } = state;
    const cursor = readCell(state);
    const chosen = ref(root, 'mark-chosen');
    const lines = [ref(root, 'mark-row'), ref(root, 'mark-col')];
    if (!place) {
      for (const node of [chosen, ...lines]) node.hidden = true;
      return;
    }
    const { rows, cols } = place;
    const at = view.token === null ? -1 : placeOf(store.state, view.dir === 'row' ? 'rows' : 'cols', view.token);
    const token = at < 0 ? null : [at, at + 1];
    setBox(chosen, token && outward(view.dir === 'row' ? rectOf(place, token, cols) : rectOf(place, rows, token)));
    const cell = cursor && map.window ? cellAt(map.window, cursor.row, cursor.col) : null;
    setBox(lines[0], cell && outward(rectOf(place, cell.rows, cols)));
    setBox(lines[1], cell && outward(rectOf(place, rows, cell.cols)));
  }

  const again = perFrame(redraw);
  store.subscribe(['map', 'scheme', 'run', 'figure'], again);
  const labels = (state) => JSON.stringify([state.view.scale, chosenOf(state)]);
  store.subscribe(['view', 'pinned'], (state, before) => before.view && labels(state) !== labels({ ...state, ...before }) && again());
  store.subscribe(['cursor', 'pinned', 'view', 'map'], mark);
  store.subscribe(['run', 'view', 'preview'], (state) => {
    if (state.map.key !== mapKey(state)) clear();
  });
  store.subscribe(['plotlyWanted'], async ({ plotlyWanted }) => {
    if (plotlyWanted !== true || plotly) return;
    try {
      plotly = await loadPlotly(document.documentElement.dataset.plotly);
      again();
    } catch {
      store.set({ plotlyWanted: 'failed' });
    }
  });
  store.on('show-head', () => bringIntoView(figure.closest('section')));
  followSize(figure, (size) => store.emit('figure', size));
  keepHeight(figure, figure.closest('section'));
  listenToPointer(figure, store, () => place, (box) => setBox(ref(root, 'mark-zoom'), box));
}
