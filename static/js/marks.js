/** A head as a mark on a canvas: in the colour of its layer, or in the shape of its role. Knows no places on the page. */

import { layerColour } from './tints.js';

const RADIUS = 4.2;

const ring = (corners, radius = () => 1, turn = -Math.PI / 2) => Array.from({ length: corners }, (_, at) => {
  const angle = turn + (2 * Math.PI * at) / corners;
  return [radius(at) * Math.cos(angle), radius(at) * Math.sin(angle)];
});
const SQUARE = ring(4, () => 1.2, -Math.PI / 4);
const DIAMOND = ring(4, () => 1.25);
const CROSS = [[-0.38, -1.1], [0.38, -1.1], [0.38, -0.38], [1.1, -0.38], [1.1, 0.38], [0.38, 0.38], [0.38, 1.1], [-0.38, 1.1], [-0.38, 0.38], [-1.1, 0.38], [-1.1, -0.38], [-0.38, -0.38]];
const turned = (points) => points.map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]);

/** For each role the sign that stands for it in a legend, its outline (null for a circle) and whether it is filled. */
export const MARKS = {
  previous: { sign: '●', outline: null, filled: true },
  self: { sign: '■', outline: SQUARE, filled: true },
  next: { sign: '◆', outline: DIAMOND, filled: true },
  duplicate: { sign: '▲', outline: ring(3, () => 1.3), filled: true },
  induction: { sign: '★', outline: ring(10, (at) => (at % 2 ? 0.58 : 1.4)), filled: true },
  punctuation: { sign: '✚', outline: CROSS, filled: true },
  local: { sign: '▼', outline: ring(3, () => 1.3, Math.PI / 2), filled: true },
  uniform: { sign: '○', outline: null, filled: false },
  mixed: { sign: '□', outline: SQUARE, filled: false },
  sink: { sign: '◇', outline: DIAMOND, filled: false },
  untested: { sign: '✖', outline: turned(CROSS), filled: true },
};

function trace(context, outline, x, y) {
  context.beginPath();
  if (outline === null) context.arc(x, y, RADIUS, 0, 2 * Math.PI);
  else outline.forEach(([dx, dy], at) => (at ? context.lineTo(x + RADIUS * dx, y + RADIUS * dy) : context.moveTo(x + RADIUS * dx, y + RADIUS * dy)));
  context.closePath();
}

/** A function that paints one head's mark, {layer, role}, at a place; `by` is 'layer' or 'role'. */
export function markPainter(by, { layers, scheme, ink }) {
  if (by === 'layer') {
    return (context, { layer }, x, y) => {
      trace(context, null, x, y);
      context.fillStyle = layerColour(scheme, layers > 1 ? layer / (layers - 1) : 0);
      context.fill();
      context.lineWidth = 0.75;
      context.strokeStyle = ink.paper;
      context.stroke();
    };
  }
  return (context, { role }, x, y) => {
    const { outline, filled } = MARKS[role];
    trace(context, outline, x, y);
    context.globalAlpha = 0.78;
    context.fillStyle = ink.strong;
    context.strokeStyle = ink.strong;
    context.lineWidth = 1.4;
    if (filled) context.fill();
    else context.stroke();
    context.globalAlpha = 1;
  };
}
