/**
 * One of the three heat maps: a side's weights, or the difference between them. Draws only what is wanted now.
 * Listens to sides, view, found, maps, cursor, scheme, plotly; emits cursor, zoom, zoom-by, zoom-out, let-go.
 */

import { el, fill, perFrame, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { t } from '../i18n.js';
import { readInk } from '../ink.js';
import { layoutOf, traceOf } from '../map-figure.js';
import { rectOf } from '../map-geometry.js';
import { draw } from '../plotly.js';
import { pooled } from '../pool.js';
import { outward, setBox } from '../views/box.js';
import { followSize } from '../views/figure-size.js';
import { listenToPointer } from '../views/map-pointer.js';
import { fromAnswer } from '../window.js';
import { shownTokens } from './data.js';
import { differenceFrame, sideFrame } from './frame.js';
import { sharedTokens } from './link.js';
import { signedScale } from './scale.js';
import { answerOf, axesOf, foundKey, isReady, mapKey, siteOf } from './state.js';

const seen = new WeakMap(); // an answer's window and tokens, made once

function ofAnswer(state, answer) {
  if (!seen.has(answer)) {
    const axes = axesOf(state, 'a');
    seen.set(answer, {
      window: fromAnswer({ ...answer, pool: 'mean', weights: answer.difference }),
      tokens: { rows: sharedTokens(answer.axis_rows, axes.rows), cols: sharedTokens(answer.axis_cols, axes.cols) },
    });
  }
  return seen.get(answer);
}

/** The answer's difference as a map: {window, tokens, frame}. */
export function differenceOf(state, answer) {
  const { window, tokens } = ofAnswer(state, answer);
  const frame = differenceFrame(state, answer, tokens);
  return { window: pooled(window, frame.rowStep, frame.colStep), tokens, frame };
}

/** What a map shows: {key, window, tokens, frame, rows, cols, lengths}, its ranges in places of its own; window null until it is there. */
export function pictureOf(state, name) {
  if (!isReady(state)) return null;
  if (name === 'd') {
    const answer = answerOf(state);
    if (!answer?.aligned || state.found.status !== 'ready') return null;
    const { rows, cols } = answer;
    const lengths = { rows: answer.axis_rows.length, cols: answer.axis_cols.length };
    return { key: state.found.key, ...differenceOf(state, answer), rows, cols, lengths };
  }
  const ranges = shownTokens(state, name);
  if (!ranges) return null;
  const frame = sideFrame(state, name, ranges);
  const map = state.maps[name];
  if (map.key !== mapKey(state, name, frame.ask)) return null;
  const { query_len: rows, key_len: cols } = siteOf(state, name);
  const window = map.window && pooled(map.window, frame.rowStep, frame.colStep);
  return { key: map.key, window, tokens: axesOf(state, name), frame, ...ranges, lengths: { rows, cols } };
}

/** The pointer's module asks the main page's store; here each map answers it in its own places. */
function facade(store, name) {
  const spoken = { cursor: (cell) => store.emit('cursor', { map: name, cell }), 'let-go': () => store.emit('let-go') };
  return {
    get state() {
      const picture = pictureOf(store.state, name);
      const { cursor } = store.state;
      const own = cursor?.[name];
      const site = { site: name, query_len: picture?.lengths.rows ?? 0, key_len: picture?.lengths.cols ?? 0 };
      return {
        run: picture ? { phase: 'done', summary: { sites: [site], tokens: {} } } : { phase: 'empty', summary: null },
        view: { site: name, dir: 'row', lens: 'raw', unit: 'token', rows: picture?.rows ?? null, cols: picture?.cols ?? null },
        cursor: own ? { row: own.rows[0], col: own.cols[0] } : null,
        map: { window: picture?.window ?? null },
      };
    },
    emit(intention, detail) {
      if (intention in spoken) spoken[intention](detail);
      else if (intention.startsWith('zoom')) store.emit(intention, { map: name, ...detail });
    },
  };
}

function traceFor(name, window, state) {
  if (name !== 'd') return traceOf(window, state.scheme, state.view.scale);
  return { ...traceOf(window, state.scheme, state.view.scale), z: window.z, zmin: -1, colorscale: signedScale(state.scheme, state.view.scale) };
}

/** What stands in the figure's place: what it waits for, or why there is nothing. */
function words(state, name) {
  if (state.plotly === 'failed') return [el('p', {}, t('figure.no_plotly'))];
  if (!isReady(state)) return [];
  const waits = name === 'd' || !shownTokens(state, name); // for the comparison: without its axes a side's range is not known
  const failed = waits ? state.found : state.maps[name];
  if (failed.status === 'error') {
    return [el('p', {}, errorText(failed.error)),
      el('button', { type: 'button', class: 'small-button', 'data-retry': name }, t('run.again'))];
  }
  const answer = answerOf(state);
  if (name === 'd' && answer && !answer.aligned) return [el('p', {}, t(`compare.apart.${answer.reason}`))];
  return [el('p', {}, t(name === 'd' ? 'compare.loading' : 'figure.loading'))];
}

/** Mounts the map `name`: 'a', 'b' or 'd'. */
export function mountMap(root, store, name) {
  const part = (what) => ref(root, `${what}-${name}`);
  const [figure, plot, hatch, stateBox] = ['figure', 'plot', 'hatch', 'state'].map(part);
  const marks = ['row', 'col'].map((what) => part(`mark-${what}`));
  let place = null;

  function clear(state) {
    place = null;
    plot.hidden = true;
    delete plot.dataset.key;
    setBox(hatch, null);
    for (const node of marks) node.hidden = true;
    const inside = words(state, name);
    fill(stateBox, inside.length ? el('div', { class: 'state-box' }, inside) : null);
  }

  async function redraw() {
    const { state } = store;
    const picture = pictureOf(state, name);
    const size = state.figures[name];
    if (!picture?.window || !state.plotly || state.plotly === 'failed') {
      clear(state);
      return;
    }
    if (!size) return;
    if (name === 'd') store.emit('cells', { cells: picture.frame.ask.maxCells });
    if (name === 'd' && picture.frame.ask.maxCells !== state.cells) return; // it is asked for again, coarser or finer
    const { window, tokens } = picture;
    place = picture.frame.place;
    fill(stateBox);
    plot.hidden = false;
    const masked = window.z.some((row) => row.includes(null));
    setBox(hatch, masked ? { x: place.left, y: place.top, width: place.width, height: place.height } : null);
    const names = { query: t('figure.query'), key: t('figure.key') };
    await draw(state.plotly, plot, [traceFor(name, window, state)], layoutOf(place, size, tokens, names, readInk()));
    plot.dataset.key = picture.key;
    mark(store.state);
  }

  function mark({ cursor }) {
    const own = place && cursor?.[name];
    setBox(marks[0], own ? outward(rectOf(place, own.rows, place.cols)) : null);
    setBox(marks[1], own ? outward(rectOf(place, place.rows, own.cols)) : null);
  }

  const again = perFrame(redraw);
  store.subscribe(['sides', 'found', 'maps', 'scheme', 'plotly', 'view', 'figures'], (state) => {
    const key = name === 'd' ? foundKey(state) : null;
    if (key && plot.dataset.key && plot.dataset.key !== key) clear(state); // nothing stale stays
    again();
  });
  store.subscribe(['cursor'], mark);
  followSize(figure, (size) => store.patch('figures', { [name]: size }));
  stateBox.addEventListener('click', ({ target }) => target.closest('[data-retry]') && store.emit('retry-found'));

  const own = facade(store, name);
  const spoken = own.emit;
  own.emit = (intention, detail) => {
    if (intention !== 'token') {
      spoken(intention, detail);
      return;
    }
    const { cursor } = store.state; // a click keeps the cell under the pointer, another lets it go
    if (cursor?.pinned) store.emit('let-go');
    else if (cursor?.[name]) store.emit('cursor', { map: name, cell: { row: cursor[name].rows[0], col: cursor[name].cols[0] }, pinned: true });
  };
  listenToPointer(figure, own, () => place, (box) => setBox(part('mark-zoom'), box));
}
