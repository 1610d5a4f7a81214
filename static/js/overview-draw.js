/** Paints the overview's canvas: thumbnails from bytes, numbers and reach bars. Knows geometry and colours, no state. */

import { maskedCell } from './masks.js';
import { byteTable } from './ramp.js';

/** For each pixel along one side of a thumbnail, the half-open range of cells it stands for. */
function ranges(pixels, cells) {
  return Array.from({ length: pixels }, (_, pixel) => {
    const from = Math.floor((pixel * cells) / pixels);
    return [from, Math.max(from + 1, Math.ceil(((pixel + 1) * cells) / pixels))];
  });
}

/** The byte of a block of cells: its largest, or for mean pooling the mean of the weights; -1 when all are masked. */
function reduceBlock(cells, start, columns, [top, bottom], [left, right], hidden, mean) {
  let largest = -1;
  let sum = 0;
  let visible = 0;
  for (let row = top; row < bottom; row += 1) {
    for (let col = left; col < right; col += 1) {
      if (hidden[row * columns + col]) continue;
      const byte = cells[start + row * columns + col];
      if (byte > largest) largest = byte;
      sum += byte * byte;
      visible += 1;
    }
  }
  return mean && visible ? Math.round(Math.sqrt(sum / visible)) : largest;
}

function hiddenCells(mask, site, rows, columns) {
  const masked = maskedCell(mask, site);
  return Uint8Array.from({ length: rows * columns }, (_, at) => Number(masked(Math.floor(at / columns), at % columns)));
}

/** Paints all thumbnails into `image` (RGBA). `hatch` and `ground` are [r, g, b] for masked cells. */
function paintThumbnails(image, { shape, cells }, site, layout, ratio, { table, hatch, ground, mean }) {
  const [layers, heads, rows, columns] = shape;
  const high = Math.round(layout.thumb.height * ratio);
  const wide = Math.round(layout.thumb.width * ratio);
  const down = ranges(high, rows);
  const across = ranges(wide, columns);
  for (let layer = 0; layer < layers; layer += 1) {
    const hidden = hiddenCells(site.masks[layer], site, rows, columns);
    const y0 = Math.round((layout.top + layer * layout.pitch.y) * ratio);
    for (let head = 0; head < heads; head += 1) {
      const x0 = Math.round((layout.left + head * layout.pitch.x) * ratio);
      const start = (layer * heads + head) * rows * columns;
      for (let y = 0; y < high; y += 1) {
        for (let x = 0; x < wide; x += 1) {
          const byte = reduceBlock(cells, start, columns, down[y], across[x], hidden, mean);
          const colour = byte >= 0 ? table[byte] : (x + y) % 4 === 0 ? hatch : ground;
          const at = ((y0 + y) * image.width + x0 + x) * 4;
          image.data[at] = colour[0];
          image.data[at + 1] = colour[1];
          image.data[at + 2] = colour[2];
          image.data[at + 3] = 255;
        }
      }
    }
  }
}

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

/** Draws everything at the screen's own resolution. */
export function drawOverview(canvas, overview, site, layout, reach, { scheme, scale, ink, ratio }) {
  canvas.width = Math.ceil(layout.width * ratio);
  canvas.height = Math.ceil(layout.height * ratio);
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  const table = byteTable(scheme, scale);
  paintThumbnails(image, overview, site, layout, ratio, { table, hatch: ink.hatch, ground: ink.ground, mean: overview.pool === 'mean' });
  context.putImageData(image, 0, 0);
  context.scale(ratio, ratio);
  paintNumbers(context, layout, ink);
  if (reach) paintReach(context, layout, reach, ink);
}
