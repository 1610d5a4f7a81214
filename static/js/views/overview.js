/**
 * All heads at once on one canvas: layers down, heads across, one colour scale; the reach of each layer beside them.
 * Listens to overview, heads, run, view, preview, scheme; emits preview, head, show-head.
 */

import { perFrame, ref } from '../dom.js';
import { t, whole } from '../i18n.js';
import { readInk } from '../ink.js';
import { drawOverview } from '../overview-draw.js';
import { aspectOf, boxOf, headAt, layoutOverview, narrowHeight, reachAt, wishedWidth } from '../overview-layout.js';
import { finished, siteOf } from '../select.js';

const WIDE = matchMedia('(min-width: 1100px)');
const TWO_COLUMNS = matchMedia('(min-width: 600px)');
const SHARE = { tall: 0.34, short: 0.37, narrow: 0.5 }; // of the page's width that the overview may take
const STEADY = { reach: true, aspect: 1 };
const SHORT = 0.45; // of the screen's height: thumbnails that fill less leave the room under them to the text

/** Mean distance and its value under uniform attention, averaged over the heads of each layer; null without any. */
function reachOf(list, layers) {
  const reach = Array.from({ length: layers }, (_, layer) => {
    const known = list.filter((head) => head.layer === layer && head.distance?.mean !== null && head.distance !== null);
    const average = (name) => known.reduce((sum, { distance }) => sum + distance[name], 0) / known.length;
    return known.length ? { mean: average('mean'), uniform: average('uniform') } : { mean: null, uniform: null };
  });
  return reach.some(({ mean }) => mean !== null) ? reach : null;
}

function showBox(node, layout, head) {
  node.hidden = !head;
  if (!head) return;
  const { x, y, width, height } = boxOf(layout, head);
  node.style.transform = `translate(${x}px, ${y}px)`;
  node.style.width = `${width}px`;
  node.style.height = `${height}px`;
}

function reachText(layer, { mean, uniform }) {
  if (mean === null) return '';
  return t('overview.reach_of', { layer: whole(layer), mean: mean.toFixed(1), uniform: uniform.toFixed(1) });
}

/** Mounts the overview. */
export function mountOverview(root, store) {
  const heads = ref(root, 'heads');
  const canvas = ref(root, 'canvas');
  const section = heads.closest('section');
  let layout = null;
  let reach = null;

  /** `steady`: the same width with or without reach, so that changing the site moves nothing sideways. */
  function arrange(site, reach, steady) {
    const room = { layers: site.n_layers, heads: site.n_heads, reach: reach !== null, aspect: aspectOf(site.query_len, site.key_len) };
    const padding = section.clientWidth - heads.clientWidth;
    const most = innerWidth * (WIDE.matches ? SHARE.tall : SHARE.narrow) - padding;
    const short = TWO_COLUMNS.matches && layoutOverview({ ...room, width: most, height: innerHeight }).height < innerHeight * SHORT;
    section.parentElement.classList.toggle('is-short', short);
    const height = WIDE.matches && !short ? heads.clientHeight : narrowHeight(site.n_layers, innerHeight);
    if (!TWO_COLUMNS.matches) return layoutOverview({ ...room, width: heads.clientWidth, height });
    const share = WIDE.matches ? (short ? SHARE.short : SHARE.tall) : SHARE.narrow;
    const width = Math.min(wishedWidth({ ...room, height, ...(steady ? STEADY : {}) }) + padding, innerWidth * share);
    document.documentElement.style.setProperty('--overview-width', `${Math.ceil(width)}px`);
    return layoutOverview({ ...room, width: Math.max(width, WIDE.matches ? section.clientWidth : 0) - padding, height });
  }

  function draw(state) {
    const site = siteOf(state);
    const ready = finished(state) && state.overview.cells && site;
    heads.hidden = !ready;
    ref(root, 'overview-foot').textContent = ready ? footText(site, state.overview.pool) : '';
    ref(root, 'overview-title').textContent = ready
      ? t('overview.all', { n: whole(site.n_layers * site.n_heads) }) : t('overview.label');
    reach = ready ? reachOf(state.heads.list, site.n_layers) : null;
    ref(root, 'reach-title').hidden = !reach;
    if (!ready) {
      layout = null;
      return;
    }
    layout = arrange(site, reach, state.run.summary.sites.length > 1);
    const look = { scheme: state.scheme, scale: state.view.scale, ink: readInk(), ratio: devicePixelRatio };
    drawOverview(canvas, state.overview, site, layout, reach, look);
    mark(state);
    if (!state.plotlyWanted) requestAnimationFrame(() => store.set({ plotlyWanted: true }));
  }

  function mark({ view, preview }) {
    if (!layout) return;
    showBox(ref(root, 'chosen'), layout, view);
    showBox(ref(root, 'previewed'), layout, preview);
  }

  const at = (event, find = headAt) => {
    const box = canvas.getBoundingClientRect();
    return layout && find(layout, event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener('pointermove', (event) => {
    const layer = reach ? at(event, reachAt) : null;
    canvas.title = layer === null ? '' : reachText(layer, reach[layer]);
  });
  const preview = perFrame((head) => store.emit('preview', head));
  canvas.addEventListener('pointermove', (event) => event.pointerType !== 'touch' && preview(at(event)));
  canvas.addEventListener('pointerleave', () => preview(null));
  canvas.addEventListener('click', (event) => {
    const head = at(event);
    if (!head) return;
    store.emit('head', head);
    store.emit('show-head');
  });
  const redraw = perFrame(() => draw(store.state));
  store.subscribe(['overview', 'heads', 'scheme'], redraw);
  store.subscribe(['run'], (state, before) => before.run?.id !== state.run.id || state.run.phase !== before.run?.phase ? redraw() : null);
  store.subscribe(['view'], (state, before) => before.view?.scale !== state.view.scale && redraw());
  store.subscribe(['view', 'preview'], mark);
  new ResizeObserver(redraw).observe(section);
}

function footText(site, pool) {
  const [rows, cols] = [site.row_step, site.col_step];
  return rows === 1 && cols === 1 ? t('pooling.one') : t(`pooling.${pool}`, { rows, cols });
}
