/** Paints the overview's canvas: thumbnails, numbers and reach bars; or thumbnails in order of a score. Knows geometry, no state. */

import { ranksBetween, spotOf } from './overview-rank.js';

const FAINT = 0.8; // how far heads that the filter leaves out go back into the page

function paintNumbers(context, layout, ink) {
  context.fillStyle = ink.quiet;
  context.font = `10px ${ink.font}`;
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (let layer = 0; layer < layout.layers; layer += 1) {
    context.fillText(String(layer), layout.left - 7, layout.top + layer * layout.pitch.y + layout.thumb.height / 2 + 0.5);
  }
  context.textAlign = 'center';
  for (let head = 0; head < layout.heads; head += 1) {
    context.fillText(String(head), layout.left + head * layout.pitch.x + layout.thumb.width / 2, layout.top / 2 - 1);
  }
}

/** `reach`: per layer {mean, uniform} in tokens; the widest of all fills the bar's room. */
function paintReach(context, layout, reach, ink) {
  const largest = Math.max(...reach.flatMap(({ mean, uniform }) => [mean ?? 0, uniform ?? 0]), 1e-9) * 1.04;
  const thickness = Math.min(12, Math.max(4, Math.round(layout.thumb.height * 0.32)));
  const mark = Math.min(layout.thumb.height - 2, thickness * 2.6);
  reach.forEach(({ mean, uniform }, layer) => {
    if (mean === null) return;
    const middle = layout.top + layer * layout.pitch.y + layout.thumb.height / 2;
    context.fillStyle = ink.bar;
    context.fillRect(layout.reachLeft, Math.round(middle - thickness / 2), Math.max(1, (mean / largest) * layout.reachWidth), thickness);
    context.fillStyle = ink.strong;
    const tick = layout.reachLeft + (uniform / largest) * layout.reachWidth;
    context.fillRect(Math.round(tick) - 0.5, Math.round(middle - mark / 2), 1.5, mark);
  });
}

function prepare(canvas, width, height, ratio) {
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  canvas.style.width = `${canvas.width / ratio}px`; // one of its pixels is one of the screen's
  canvas.style.height = `${canvas.height / ratio}px`;
  return canvas.getContext('2d');
}

/** Draws layers down and heads across at the screen's own resolution. `dimmed(layer, head)` says which heads go back. */
export function drawOverview(canvas, thumbnail, layout, reach, { ink, ratio }, dimmed) {
  const context = prepare(canvas, layout.width, layout.height, ratio);
  const spot = (layer, head) => [layout.left + head * layout.pitch.x, layout.top + layer * layout.pitch.y];
  const every = (paint) => {
    for (let layer = 0; layer < layout.layers; layer += 1) for (let head = 0; head < layout.heads; head += 1) paint(layer, head);
  };
  every((layer, head) => context.putImageData(thumbnail(layer, head), ...spot(layer, head).map((place) => Math.round(place * ratio))));
  context.scale(ratio, ratio);
  context.fillStyle = ink.paper;
  context.globalAlpha = FAINT;
  every((layer, head) => dimmed(layer, head) && context.fillRect(...spot(layer, head), layout.thumb.width + 0.5, layout.thumb.height + 0.5));
  context.globalAlpha = 1;
  paintNumbers(context, layout, ink);
  if (reach) paintReach(context, layout, reach, ink);
}

/** Draws the part of a ranked layout that is seen from `top` on, `height` high. `label(rank)` is {place, figure}. */
export function drawRanked(canvas, thumbnail, layout, [top, height], { ink, ratio }, label) {
  const context = prepare(canvas, layout.width, height, ratio);
  const [from, to] = ranksBetween(layout, top, top + height);
  for (let rank = from; rank < to; rank += 1) {
    const { x, y } = spotOf(layout, rank);
    const { layer, head } = layout.order[rank];
    context.putImageData(thumbnail(layer, head), Math.round(x * ratio), Math.round((y - top) * ratio));
  }
  context.scale(ratio, ratio);
  context.textBaseline = 'middle';
  for (let rank = from; rank < to; rank += 1) {
    const { x, y } = spotOf(layout, rank);
    const { place, figure } = label(rank);
    const middle = y - top + layout.thumb.height + 10; // clear of the frame
    context.font = `10px ${ink.font}`;
    context.fillStyle = ink.strong;
    context.textAlign = 'left';
    context.fillText(place, x, middle);
    context.fillStyle = ink.quiet;
    context.textAlign = 'right';
    context.fillText(figure, x + layout.thumb.width, middle);
  }
}
