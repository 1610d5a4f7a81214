/** All distances between heads as one square, alike heads side by side. Listens to similarity, finder, view, preview, scheme; emits head, preview, show-head. */

import { distanceImage, headOf, isComparable } from '../alike.js';
import { perFrame, ref } from '../dom.js';
import { shownHead, siteOf } from '../select.js';

/** `words(one, other)` says how far two heads are apart. */
export function mountAlikeMap(root, store, words) {
  const [figure, canvas, cross, text] = ['alike-map', 'alike-canvas', 'alike-cross', 'alike-text'].map((name) => ref(root, name));
  let picture = null; // {order, places, side}

  function draw() {
    const { similarity, finder, scheme } = store.state;
    if (!isComparable(similarity) || finder.tab !== 'alike' || finder.view !== 'map') return;
    const { order } = similarity.answer;
    const side = Math.min(figure.clientWidth, figure.clientHeight);
    if (side < 40) return;
    const image = distanceImage(similarity.distances, order, scheme);
    const sheet = new OffscreenCanvas(order.length, order.length);
    sheet.getContext('2d').putImageData(image, 0, 0);
    canvas.width = Math.round(side * devicePixelRatio);
    canvas.height = canvas.width;
    canvas.style.width = `${side}px`;
    canvas.style.height = `${side}px`;
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = canvas.width < order.length;
    context.imageSmoothingQuality = 'high';
    context.drawImage(sheet, 0, 0, canvas.width, canvas.width);
    picture = { order, places: new Map(order.map((index, at) => [index, at])), side };
    mark();
  }

  /** A band over the shown head's row. */
  function mark() {
    const { layer, head } = shownHead(store.state);
    const at = picture?.places.get(layer * (siteOf(store.state)?.n_heads ?? 0) + head);
    cross.hidden = at === undefined;
    if (at === undefined) return;
    const cell = picture.side / picture.order.length;
    cross.style.transform = `translate(0, ${Math.max(0, (at + 0.5) * cell - 2)}px)`;
    cross.style.width = `${picture.side}px`;
  }

  function cellAt(event) {
    if (!picture) return null;
    const box = canvas.getBoundingClientRect();
    const cell = picture.side / picture.order.length;
    const [col, row] = [Math.floor((event.clientX - box.left) / cell), Math.floor((event.clientY - box.top) / cell)];
    const inside = [col, row].every((at) => at >= 0 && at < picture.order.length);
    return inside ? { row: picture.order[row], col: picture.order[col], x: event.clientX - box.left, y: event.clientY - box.top } : null;
  }

  const point = perFrame((cell) => {
    text.hidden = !cell;
    store.emit('preview', cell && headOf(cell.row, siteOf(store.state).n_heads));
    if (!cell) return;
    text.textContent = words(cell.row, cell.col);
    const left = Math.min(figure.clientWidth - text.offsetWidth - 4, Math.max(4, cell.x + 12));
    text.style.transform = `translate(${Math.round(left)}px, ${Math.round(cell.y > 40 ? cell.y - text.offsetHeight - 10 : cell.y + 16)}px)`;
  });
  canvas.addEventListener('pointermove', (event) => event.pointerType !== 'touch' && point(cellAt(event)));
  canvas.addEventListener('pointerleave', () => point(null));
  canvas.addEventListener('click', (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    store.emit('head', headOf(cell.row, siteOf(store.state).n_heads));
    store.emit('show-head');
  });
  const again = perFrame(draw);
  store.subscribe(['similarity', 'scheme'], again);
  store.subscribe(['finder'], (state, before) => (state.finder.view !== before.finder?.view || state.finder.tab !== before.finder?.tab) && again());
  store.subscribe(['view', 'preview'], mark);
  new ResizeObserver(again).observe(figure);
}
