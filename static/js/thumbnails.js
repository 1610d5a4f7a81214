/** One head's picture of a given size from the overview's bytes, made when first wanted and kept. Knows colours, no places. */

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

/** A head's cells as if each row of them had the weight 1 as its largest. */
function byRow(cells, start, rows, columns) {
  const own = cells.slice(start, start + rows * columns);
  for (let row = 0; row < rows; row += 1) {
    const line = own.subarray(row * columns, (row + 1) * columns);
    const largest = line.reduce((most, byte) => Math.max(most, byte), 1);
    for (let col = 0; col < columns; col += 1) line[col] = Math.round((255 * line[col]) / largest);
  }
  return own;
}

/** Paints one head. `hatch` and `ground` are [r, g, b] for masked cells. */
function paint(image, cells, start, columns, { down, across, hidden, table, hatch, ground, mean }) {
  let at = 0;
  for (let y = 0; y < image.height; y += 1) {
    for (let x = 0; x < image.width; x += 1) {
      const byte = reduceBlock(cells, start, columns, down[y], across[x], hidden, mean);
      const colour = byte >= 0 ? table[byte] : (x + y) % 4 === 0 ? hatch : ground;
      image.data[at] = colour[0];
      image.data[at + 1] = colour[1];
      image.data[at + 2] = colour[2];
      image.data[at + 3] = 255;
      at += 4;
    }
  }
}

/** A function (layer, head) → ImageData of `size` at the screen's own resolution. */
export function thumbnails({ shape, cells, pool }, site, size, { scheme, scale, ink, ratio }) {
  const [, heads, rows, columns] = shape;
  const [wide, high] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
  const look = {
    down: ranges(high, rows), across: ranges(wide, columns), table: byteTable(scheme, scale),
    hatch: ink.hatch, ground: ink.ground, mean: pool === 'mean',
  };
  const hidden = new Map(); // by layer
  const made = new Map(); // by layer · heads + head

  return (layer, head) => {
    const flat = layer * heads + head;
    if (!made.has(flat)) {
      if (!hidden.has(layer)) hidden.set(layer, hiddenCells(site.masks[layer], site, rows, columns));
      const image = new ImageData(wide, high);
      const start = flat * rows * columns;
      const [own, from] = scale === 'row' ? [byRow(cells, start, rows, columns), 0] : [cells, start];
      paint(image, own, from, columns, { ...look, hidden: hidden.get(layer) });
      made.set(flat, image);
    }
    return made.get(flat);
  };
}
