/**
 * Pointer and keys on the heat map: hovering reads a cell, a click chooses its row, dragging zooms into a box, Shift and
 * dragging moves, the wheel and + − 0 zoom, arrows move the cell. Emits cursor, token, pin-cell, mark, mark-cell, let-go, zoom, zoom-by, zoom-out.
 */

import { perFrame } from '../dom.js';
import { cellAtPoint, rectOf } from '../map-geometry.js';
import { keptCell, readCell } from '../kept-cell.js';
import { finished, mapSize, shownRange, tokensAt } from '../select.js';

const CLICK_REACH = 4; // px between press and release that still count as a click
const WHEEL = 0.0015; // zoom per wheel unit
const NARROW = matchMedia('(max-width: 599px)');

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const isSameCell = (one, other) => one?.row === other.row && one?.col === other.col;
const clamp = (value, from, to) => Math.min(to - 1, Math.max(from, value));
const shift = ([from, to], by) => [from + by, to + by];

/** Moves the read cell by one drawn cell (ten with Shift); at the edge of a zoomed map the map moves along. */
function moveCell(store, [down, across], far) {
  const { rows, cols } = shownRange(store.state);
  const { map } = store.state;
  const cursor = readCell(store.state);
  const size = mapSize(store.state);
  const by = cursor ? (far ? 10 : 1) : 0;
  const start = cursor ?? { row: rows[0], col: cols[0] };
  const row = clamp(start.row + down * by * (map.window?.rowStep ?? 1), 0, size.rows);
  const col = clamp(start.col + across * by * (map.window?.colStep ?? 1), 0, size.cols);
  const missing = (place, [from, to]) => (place < from ? place - from : Math.max(0, place - to + 1));
  const [rowsBy, colsBy] = [missing(row, rows), missing(col, cols)];
  if (rowsBy || colsBy) store.emit('zoom', { rows: shift(rows, rowsBy), cols: shift(cols, colsBy) });
  store.emit('cursor', { row, col });
}

function onKey(event, store) {
  const { cursor: pointed, marking } = store.state;
  const cursor = readCell(store.state);
  if (event.key in STEPS) moveCell(store, STEPS[event.key], event.shiftKey);
  else if (event.key === '+' || event.key === '=') store.emit('zoom-by', { factor: 0.5, ...cursor });
  else if (event.key === '-') store.emit('zoom-by', { factor: 2, ...cursor });
  else if (event.key === '0') store.emit('zoom-out');
  else if (event.key === 'm' && cursor) store.emit('mark-cell', cursor);
  else if (event.key === 'Enter' && cursor) {
    store.emit('token', { index: tokensAt(store.state, 'rows', cursor.row)[0], dir: 'row', stay: pointed !== null });
    store.emit('pin-cell', cursor);
  } else if (event.key === 'Escape') store.emit(pointed ? 'cursor' : cursor ? 'pin-cell' : marking ? 'mark' : 'let-go', null);
  else return false;
  return true;
}

const between = (one, other) => [Math.min(one, other), Math.max(one, other) + 1];

/** Press, drag, release. `at` turns an event into a cell; `drawBox` shows the box being drawn. */
function listenToDrag(figure, store, at, place, drawBox) {
  let press = null; // {x, y, cell}
  const isClick = (event) => Math.hypot(event.clientX - press.x, event.clientY - press.y) <= CLICK_REACH;
  const box = (cell) => ({ rows: between(press.cell.row, cell.row), cols: between(press.cell.col, cell.col) });

  figure.addEventListener('pointerdown', (event) => {
    const cell = event.button === 0 ? at(event) : null;
    press = cell && { x: event.clientX, y: event.clientY, cell };
  });
  figure.addEventListener('pointermove', (event) => {
    if (!press || event.pointerType === 'touch' || event.shiftKey || isClick(event)) return;
    if (!figure.hasPointerCapture(event.pointerId)) figure.setPointerCapture(event.pointerId);
    const { rows, cols } = box(at(event, true));
    drawBox(rectOf(place(), rows, cols));
  });
  const release = (event) => {
    drawBox(null);
    if (!press || !place()) return;
    const cell = at(event, true);
    const { rows, cols } = shownRange(store.state);
    if (isClick(event)) {
      if (event.type === 'pointerup') {
        const [axis, place] = store.state.view.dir === 'row' ? ['rows', cell.row] : ['cols', cell.col];
        const again = isSameCell(keptCell(store.state), cell);
        store.emit('token', { index: tokensAt(store.state, axis, place)[0], stay: !again });
        store.emit('pin-cell', again ? null : cell);
      }
    } else if (event.shiftKey) {
      store.emit('zoom', { rows: shift(rows, press.cell.row - cell.row), cols: shift(cols, press.cell.col - cell.col) });
    } else if (event.pointerType !== 'touch' && event.type === 'pointerup') store.emit('zoom', box(cell));
    press = null;
  };
  figure.addEventListener('pointerup', release);
  figure.addEventListener('pointercancel', release);
}

/** Listens on `figure`; `place()` is the present geometry, or null; `drawBox(rectangle)` shows the box of a drag. */
export function listenToPointer(figure, store, place, drawBox) {
  const at = (event, nearest = false) => {
    const box = figure.getBoundingClientRect();
    return place() && finished(store.state) && cellAtPoint(place(), event.clientX - box.left, event.clientY - box.top, nearest);
  };
  const hover = perFrame((cell) => store.emit('cursor', cell));
  figure.addEventListener('pointermove', (event) => hover(at(event)));
  figure.addEventListener('pointerdown', (event) => hover(at(event)));
  figure.addEventListener('pointerleave', (event) => event.pointerType !== 'touch' && hover(null)); // a lifted finger keeps its cell
  figure.addEventListener('dblclick', () => store.emit('zoom-out'));
  listenToDrag(figure, store, at, place, drawBox);
  figure.addEventListener('wheel', (event) => {
    const cell = at(event);
    if (!cell || (!event.ctrlKey && NARROW.matches)) return;
    event.preventDefault();
    store.emit('zoom-by', { factor: Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * WHEEL), ...cell });
  }, { passive: false });
  figure.addEventListener('keydown', (event) => {
    if (finished(store.state) && onKey(event, store)) event.preventDefault();
  });
}
