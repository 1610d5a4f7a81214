/** How alike heads are, from the service's answer: names, neighbours and the picture of all distances. Pure but for ImageData. */

import { likeness } from './tints.js';

/** Whether there are distances to show: a text without two keys in a row has none. */
export const isComparable = ({ status, answer }) => status === 'ready' && answer.rows.length > 0;

/** The head at a flat index. */
export const headOf = (index, heads) => ({ layer: Math.floor(index / heads), head: index % heads });

/** How a head is written in short. */
export const shortName = ({ layer, head }) => `${layer}·${head}`;

/** The distance of two heads by flat index. */
export const distanceOf = ({ shape, data }, one, other) => data[one * shape[0] + other];

/** The `count` heads closest to one: [{index, distance}], the closest first. */
export function nearestTo(distances, index, count) {
  const [size] = distances.shape;
  const others = Array.from({ length: size }, (_, other) => ({ index: other, distance: distances.data[index * size + other] }));
  return others.filter((one) => one.index !== index && Number.isFinite(one.distance)).sort((one, other) => one.distance - other.distance).slice(0, count);
}

/** Distance below which two heads are near-duplicates, as the service has it. */
export const CLOSE = 0.1;

/** Near-duplicates within each layer: for each layer [[head, head, distance], …], the closest first. */
export function alikeInLayers({ shape, data }, heads) {
  const [size] = shape;
  return Array.from({ length: size / heads }, (_, layer) => {
    const pairs = [];
    for (let one = 0; one < heads; one += 1) {
      for (let other = one + 1; other < heads; other += 1) {
        const distance = data[(layer * heads + one) * size + layer * heads + other];
        if (distance < CLOSE) pairs.push([one, other, distance]);
      }
    }
    return pairs.sort((first, second) => first[2] - second[2]);
  });
}

/** All distances as a square image, rows and columns in this order. */
export function distanceImage({ shape, data }, order, scheme) {
  const size = order.length;
  const image = new ImageData(size, size);
  const table = Array.from({ length: 256 }, (_, at) => likeness(scheme, at / 255));
  let at = 0;
  for (const row of order) {
    for (const col of order) {
      const [red, green, blue] = table[Math.round(255 * Math.min(1, Math.max(0, data[row * shape[0] + col])))];
      image.data[at] = red;
      image.data[at + 1] = green;
      image.data[at + 2] = blue;
      image.data[at + 3] = 255;
      at += 4;
    }
  }
  return image;
}

/** Plotly's layout for places that mean nothing but nearness: both axes have the same scale and no numbers. */
export function placesLayout(points, size, ink) {
  const margin = { l: 10, r: 10, t: 10, b: 10, pad: 0 };
  const extent = (name) => {
    const values = points.map((point) => point[name]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [x, y] = [extent('x'), extent('y')];
  const wide = size.width - margin.l - margin.r;
  const high = size.height - margin.t - margin.b;
  const perPixel = 1.08 * Math.max((x[1] - x[0]) / wide, (y[1] - y[0]) / high, 1e-9);
  const around = ([from, to], pixels) => [(from + to - perPixel * pixels) / 2, (from + to + perPixel * pixels) / 2];
  const ranges = { x: around(x, wide), y: around(y, high) };
  const axis = (range) => ({ range, fixedrange: true, visible: false });
  return {
    ranges, margin,
    layout: {
      ...size, autosize: false, margin, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', dragmode: false, hovermode: false, showlegend: false,
      font: { family: ink.font, color: ink.strong }, xaxis: axis(ranges.x), yaxis: axis(ranges.y),
    },
  };
}
