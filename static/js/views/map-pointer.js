/** Pointer and keys on the heat map: hovering reads a cell, a click chooses its row, the wheel and + − 0 zoom, arrows move the cell. */

import { perFrame } from '../dom.js';
import { cellAtPoint } from '../map-geometry.js';
import { finished, shownRange } from '../select.js';

const CLICK_REACH = 4; // px between press and release that still count as a click
const WHEEL = 0.0015; // zoom per wheel unit

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function moveCell(store, [down, across], far) {
  const { rows, cols } = shownRange(store.state);
  const { cursor, map } = store.state;
  const step = far ? 10 : 1;
  const clamp = (value, [from, to]) => Math.min(to - 1, Math.max(from, value));
  const start = cursor ?? { row: rows[0], col: cols[0] };
  const by = cursor ? step : 0;
  store.emit('cursor', {
    row: clamp(start.row + down * by * (map.window?.rowStep ?? 1), rows),
    col: clamp(start.col + across * by * (map.window?.colStep ?? 1), cols),
  });
}

function onKey(event, store) {
  const { cursor } = store.state;
  if (event.key in STEPS) moveCell(store, STEPS[event.key], event.shiftKey);
  else if (event.key === '+' || event.key === '=') store.emit('zoom-by', { factor: 0.5, ...cursor });
  else if (event.key === '-') store.emit('zoom-by', { factor: 2, ...cursor });
  else if (event.key === '0') store.emit('zoom-out');
  else if (event.key === 'Enter' && cursor) store.emit('token', { index: cursor.row, dir: 'row' });
  else if (event.key === 'Escape') store.emit(cursor ? 'cursor' : 'let-go', null);
  else return false;
  return true;
}

/** Listens on `figure`; `place()` is the present geometry, or null. */
export function listenToPointer(figure, store, place) {
  const at = (event) => {
    const box = figure.getBoundingClientRect();
    return place() && cellAtPoint(place(), event.clientX - box.left, event.clientY - box.top);
  };
  const hover = perFrame((cell) => store.emit('cursor', cell));
  let pressed = null;
  figure.addEventListener('pointermove', (event) => hover(at(event)));
  figure.addEventListener('pointerleave', () => hover(null));
  figure.addEventListener('pointerdown', (event) => {
    pressed = [event.clientX, event.clientY];
    hover(at(event));
  }, { capture: true });
  addEventListener('pointerup', (event) => {
    const from = pressed;
    pressed = null;
    if (!from || Math.hypot(event.clientX - from[0], event.clientY - from[1]) > CLICK_REACH) return;
    const cell = event.target instanceof Node && finished(store.state) ? at(event) : null;
    if (cell && event.button === 0 && event.detail < 2) store.emit('token', { index: store.state.view.dir === 'row' ? cell.row : cell.col });
  });
  figure.addEventListener('wheel', (event) => {
    const cell = at(event);
    if (!cell || (!event.ctrlKey && matchMedia('(max-width: 599px)').matches)) return;
    event.preventDefault();
    store.emit('zoom-by', { factor: Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * WHEEL), ...cell });
  }, { passive: false });
  figure.addEventListener('keydown', (event) => {
    if (finished(store.state) && onKey(event, store)) event.preventDefault();
  });
}
