/**
 * All heads at once on one canvas: layers down, heads across, one colour scale, the reach of each layer beside them; or in
 * order of a score. Listens to overview, heads, finder, run, view, preview, scheme; emits preview, head, show-head.
 */

import { perFrame, ref } from '../dom.js';
import { isRanked, surveyOf } from '../finder.js';
import { t, whole } from '../i18n.js';
import { readInk } from '../ink.js';
import { drawOverview, drawRanked } from '../overview-draw.js';
import { boxOf, headAt, reachAt } from '../overview-layout.js';
import { layoutRanked, rankedAt, rankedBox } from '../overview-rank.js';
import { finished, siteOf } from '../select.js';
import { figureText } from '../table-columns.js';
import { thumbnails } from '../thumbnails.js';
import { setBox } from './box.js';
import { arrange, rankedRoom } from './overview-room.js';
import { pointingAt } from './pointing.js';

const NARROW = 72; // px: below this a place and three digits would touch
const SIZES = 3; // of thumbnails that are kept: by layer, by score, and one from before the window changed

/** Mean distance and its value under uniform attention, averaged over the heads of each layer; null without any. */
function reachOf(list, layers) {
  const reach = Array.from({ length: layers }, (_, layer) => {
    const known = list.filter((head) => head.layer === layer && Number.isFinite(head.distance?.mean));
    const average = (name) => known.reduce((sum, { distance }) => sum + distance[name], 0) / known.length;
    return known.length ? { mean: average('mean'), uniform: average('uniform') } : { mean: null, uniform: null };
  });
  return reach.some(({ mean }) => mean !== null) ? reach : null;
}

function reachText(layer, { mean, uniform }) {
  if (mean === null) return '';
  return t('overview.reach_of', { layer: whole(layer), mean: mean.toFixed(1), uniform: uniform.toFixed(1) });
}

/** Mounts the overview. */
export function mountOverview(root, store) {
  const heads = ref(root, 'heads');
  const room = ref(root, 'heads-room');
  const canvas = ref(root, 'canvas');
  const section = heads.closest('section');
  const pointing = pointingAt(store);
  let layout = null;
  let reach = null;
  let kept = { keys: [], bySize: new Map() };

  /** The painter of thumbnails of a size, kept while nothing that they show changes. */
  function painter(state, site, size, look) {
    const keys = [state.overview.cells, site, look.scheme, look.scale, look.ratio];
    if (!keys.every((key, at) => key === kept.keys[at])) kept = { keys, bySize: new Map() };
    const name = `${size.width}x${size.height}`;
    if (!kept.bySize.has(name)) {
      if (kept.bySize.size >= SIZES) kept.bySize.delete(kept.bySize.keys().next().value);
      kept.bySize.set(name, thumbnails(state.overview, site, size, look));
    }
    return kept.bySize.get(name);
  }

  function draw(state) {
    const site = siteOf(state);
    const ready = finished(state) && state.overview.cells && site;
    const ranked = ready && isRanked(state.finder) && state.heads.status === 'ready';
    heads.hidden = !ready;
    heads.classList.toggle('is-ranked', Boolean(ranked));
    ref(root, 'overview-foot').textContent = ready && state.finder.tab === 'pictures' ? footText(site, state.overview.pool) : '';
    reach = ready && !ranked ? reachOf(state.heads.list, site.n_layers) : null;
    ref(root, 'reach-title').hidden = !reach || state.finder.tab !== 'pictures';
    if (ready && !state.plotlyWanted) requestAnimationFrame(() => store.set({ plotlyWanted: true }));
    if (!ready || state.finder.tab !== 'pictures') {
      layout = null;
      return;
    }
    const look = { scheme: state.scheme, scale: state.view.scale, ink: readInk(), ratio: devicePixelRatio };
    if (ranked) drawInOrder(state, site, look);
    else drawLayers(state, site, look);
    mark(state);
  }

  function drawLayers(state, site, look) {
    layout = arrange({ section, heads, site, reach: reach !== null, steady: state.run.summary.sites.length > 1 });
    room.style.height = '';
    const { list, matches } = surveyOf(state);
    const out = new Set(list.filter((_, at) => !matches[at]).map(({ layer, head }) => layer * site.n_heads + head));
    drawOverview(canvas, painter(state, site, layout.thumb, look), layout, reach, look, (layer, head) => out.has(layer * site.n_heads + head));
  }

  function drawInOrder(state, site, look) {
    const { list, order, figures } = surveyOf(state);
    arrange({ section, heads, site, reach: true, steady: true }); // sets the width of the column
    const { width, height, aspect } = rankedRoom({ heads, site });
    layout = layoutRanked({ order: order.map((at) => list[at]), width, aspect });
    room.style.height = `${layout.height}px`;
    if (store.state.grid?.columns !== layout.columns) store.set({ grid: { columns: layout.columns } });
    const top = Math.max(0, Math.min(heads.scrollTop, layout.height - height));
    const label = (rank) => {
      const { layer, head } = layout.order[rank];
      const figure = figures[order[rank]];
      const most = layout.thumb.width < NARROW ? 2 : 3; // digits
      return { place: `${layer}·${head}`, figure: figure ? figureText(state.finder.score, figure.corrected ?? figure.value, most) : '–' };
    };
    drawRanked(canvas, painter(state, site, layout.thumb, look), layout, [top, Math.min(height, layout.height)], look, label);
  }

  function mark({ view, preview }) {
    if (!layout) return;
    const box = (head) => head && (layout.order ? rankedBox(layout, head) : boxOf(layout, head));
    setBox(ref(root, 'chosen'), box(view));
    setBox(ref(root, 'previewed'), box(preview));
    if (layout.order && preview && !pointing.isNow()) ref(root, 'previewed').scrollIntoView({ block: 'nearest' });
  }

  const at = (event, find = layout?.order ? rankedAt : headAt) => {
    const box = room.getBoundingClientRect();
    return layout && find(layout, event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener('pointermove', (event) => {
    const layer = reach ? at(event, reachAt) : null;
    canvas.title = layer === null ? '' : reachText(layer, reach[layer]);
  });
  canvas.addEventListener('pointermove', (event) => event.pointerType !== 'touch' && pointing.preview(at(event)));
  canvas.addEventListener('pointerleave', () => pointing.preview(null));
  canvas.addEventListener('click', (event) => {
    const head = at(event);
    if (!head) return;
    store.emit('head', { layer: head.layer, head: head.head });
    store.emit('show-head');
  });
  const redraw = perFrame(() => draw(store.state));
  heads.addEventListener('scroll', () => layout?.order && redraw());
  store.subscribe(['overview', 'heads', 'pairs', 'finder', 'scheme'], redraw);
  store.subscribe(['run'], (state, before) => before.run?.id !== state.run.id || state.run.phase !== before.run?.phase ? redraw() : null);
  store.subscribe(['view'], (state, before) => before.view?.scale !== state.view.scale && redraw());
  store.subscribe(['view', 'preview'], mark);
  new ResizeObserver(redraw).observe(section);
}

function footText(site, pool) {
  const [rows, cols] = [site.row_step, site.col_step];
  return rows === 1 && cols === 1 ? t('pooling.one') : t(`pooling.${pool}`, { rows, cols });
}
