/** Heads as points by two of their figures, as Plotly's data and layout. Pure; names come in escaped. */

const MARGIN = { l: 50, r: 12, t: 10, b: 42, pad: 0 };
const ROOM = 0.04; // of the range, beyond the outermost points

/** The range that holds all values and 0. */
function rangeOf(values) {
  const [low, high] = [Math.min(0, ...values), Math.max(...values)];
  const room = (high - low || 1) * ROOM;
  return [low - room, high + room];
}

/** One number where all are the same, else null. */
function onlyOne(values) {
  const [first] = values;
  return Number.isFinite(first) && values.every((value) => Math.abs(value - first) < 1e-9) ? first : null;
}

const line = (axis, at, colour) => ({
  type: 'line', line: { color: colour, width: 1, dash: 'dash' },
  ...(axis === 'x' ? { x0: at, x1: at, xref: 'x', y0: 0, y1: 1, yref: 'paper' } : { y0: at, y1: at, yref: 'y', x0: 0, x1: 1, xref: 'paper' }),
});

function axis(title, range, ink) {
  return {
    title: { text: title, font: { size: 12, color: ink.strong }, standoff: 6 }, range, fixedrange: true, zeroline: false, showline: true,
    linecolor: ink.faint, gridcolor: ink.line, tickfont: { size: 11, color: ink.quiet }, nticks: 7,
  };
}

/**
 * The points as Plotly's data. Plotly draws what is around them; the marks are painted on a canvas above, where a thousand
 * of them take a few milliseconds and not a hundred.
 */
export const unmarked = (points) => [{ type: 'scatter', mode: 'none', hoverinfo: 'skip', x: points.map(({ x }) => x), y: points.map(({ y }) => y) }];

/** {layout, ranges, margin} for points with these names on the axes; `chances` are {x, y} of each point. */
export function scatterLayout(points, chances, names, size, ink) {
  const ranges = { x: rangeOf(points.map(({ x }) => x)), y: rangeOf(points.map(({ y }) => y)) };
  const shapes = ['x', 'y'].map((name) => [name, onlyOne(chances.map((chance) => chance[name]))])
    .filter(([, at]) => at !== null).map(([name, at]) => line(name, at, ink.quiet));
  return {
    ranges, margin: MARGIN,
    layout: {
      ...size, autosize: false, margin: MARGIN, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', dragmode: false, hovermode: false,
      showlegend: false, font: { family: ink.font, color: ink.strong }, shapes,
      xaxis: axis(names.x, ranges.x, ink), yaxis: axis(names.y, ranges.y, ink),
    },
  };
}
