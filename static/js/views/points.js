/**
 * Heads as points of a Plotly figure, which draws all around them; the marks are painted on a canvas above it. The nearest
 * point is told and previewed, a click opens it, the shown one has a ring.
 * Knows no scores. Emits preview, head, show-head.
 */

import { el, perFrame } from '../dom.js';
import { draw, loadPlotly } from '../plotly.js';
import { unmarked } from '../scatter-figure.js';
import { shownHead } from '../select.js';

const REACH = 16; // px from a point that still mean it
const RING = 16; // px across

/** `words(spot)` says what a point is. Gives `show`, which draws, and `mark`, which moves the ring. */
export function mountPoints({ figure, plot, ring, text }, store, words) {
  let spots = []; // {layer, head, x, y} in the axes' own numbers
  let frame = null; // {ranges, margin, size}
  let latest = 0;
  let hovered = null; // the spot that is told
  const canvas = el('canvas', { class: 'marks-canvas', 'aria-hidden': 'true' });
  plot.after(canvas);

  const scale = (value, [from, to], start, length) => start + ((value - from) / (to - from)) * length;
  function pixel({ x, y }) {
    const { ranges, margin, size } = frame;
    const wide = size.width - margin.l - margin.r;
    const high = size.height - margin.t - margin.b;
    return [scale(x, ranges.x, margin.l, wide), margin.t + high - scale(y, ranges.y, 0, high)];
  }

  function nearest(event) {
    if (!frame) return null;
    const box = figure.getBoundingClientRect();
    let found = null;
    let least = REACH ** 2;
    for (const spot of spots) {
      const [x, y] = pixel(spot);
      const far = (x - event.clientX + box.left) ** 2 + (y - event.clientY + box.top) ** 2;
      if (far < least) [found, least] = [spot, far];
    }
    return found;
  }

  function tell(spot) {
    text.hidden = !spot;
    if (!spot) return;
    text.textContent = words(spot);
    const [x, y] = pixel(spot);
    const left = Math.min(frame.size.width - text.offsetWidth - 4, Math.max(4, x + 12));
    const top = y - text.offsetHeight - 10 > 0 ? y - text.offsetHeight - 10 : y + 14;
    text.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  function mark() {
    const head = shownHead(store.state);
    const spot = frame && spots.find((one) => one.layer === head.layer && one.head === head.head);
    ring.hidden = !spot;
    if (!spot) return;
    const [x, y] = pixel(spot);
    ring.style.transform = `translate(${x - RING / 2}px, ${y - RING / 2}px)`;
    ring.classList.toggle('is-preview', store.state.preview !== null);
  }

  function paintAll(paint) {
    const { width, height } = frame.size;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d');
    context.scale(devicePixelRatio, devicePixelRatio);
    for (const spot of spots) paint(context, spot, ...pixel(spot));
  }

  /** `layout` is Plotly's; `paint` draws one of the `shown` spots. A later call wins over one that waits for Plotly. */
  async function show({ layout, ranges, margin }, shown, paint) {
    latest += 1;
    const turn = latest;
    const plotly = await loadPlotly(document.documentElement.dataset.plotly).catch(() => null);
    if (turn !== latest) return;
    if (!plotly) {
      store.set({ plotlyWanted: 'failed' });
      return;
    }
    spots = shown;
    frame = { ranges, margin, size: { width: layout.width, height: layout.height } };
    hovered = null; // it is of the picture before
    tell(null);
    paintAll(paint);
    await draw(plotly, plot, unmarked(shown), layout);
    plot.dataset.drawn = String(turn);
    mark();
  }

  function clear() {
    latest += 1;
    spots = [];
    frame = null;
    canvas.width = 0;
    hovered = null;
    tell(null);
    mark();
  }

  const point = perFrame((spot) => {
    hovered = spot;
    tell(spot);
    store.emit('preview', spot && { layer: spot.layer, head: spot.head });
  });
  figure.addEventListener('pointermove', (event) => event.pointerType !== 'touch' && point(nearest(event)));
  figure.addEventListener('pointerleave', () => point(null));
  figure.addEventListener('click', (event) => {
    const spot = hovered ?? nearest(event); // a click's place is rounded to whole pixels: what was told is what opens
    if (!spot) return;
    tell(spot);
    store.emit('head', { layer: spot.layer, head: spot.head });
    store.emit('show-head');
  });
  store.subscribe(['view', 'preview'], mark);
  return { show, clear };
}
