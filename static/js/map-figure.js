/** The heat map as Plotly's data and layout: integer axes, escaped tick text, one fixed colour scale. Pure. */

import { cutAlike, labelWidth, tickText } from './labels.js';
import { plotlyScale } from './ramp.js';
import { placement } from './window.js';

const MARGIN = 90; // px, roughly, that labels take of a figure; only to guess whether all of them fit
const LABEL_ROOM = 13; // px that one label needs across its line
const HALF_LABEL = 7; // px of a label above the middle of its row

/** Indices to label: as many as fit without touching. */
function labelled([from, to], pixels) {
  const every = Math.max(1, Math.ceil(((to - from) * LABEL_ROOM) / Math.max(1, pixels)));
  const first = Math.ceil(from / every) * every;
  return Array.from({ length: Math.max(0, Math.ceil((to - first) / every)) }, (_, at) => first + at * every);
}

/** A token's place on its axis, unless it says another one itself. */
const positionOf = (tokens, index) => (tokens[index].position === undefined ? index : tokens[index].position);

function axis(range, pixels, tokens, ink) {
  const tickvals = labelled(range, pixels);
  const numbered = tickvals[1] - tickvals[0] > 1 || cutAlike(tickvals.map((index) => tokens[index]));
  return {
    tickvals,
    ticktext: tickvals.map((index) => tickText(tokens[index], ink.faint, numbered ? positionOf(tokens, index) : null)),
    tickmode: 'array', type: 'linear', showgrid: false, zeroline: false, ticks: '', automargin: false, showline: false,
    tickfont: { size: 11, color: ink.strong }, fixedrange: false,
  };
}

/** Letters of the longest label down and across, so that a figure's margins fit; with its position where labels have one. */
export function longestLabels(tokens, rows, cols, { width, height }) {
  const pixels = Math.min(width, height) - MARGIN;
  const longest = (range, list) => {
    const inside = list.slice(...range);
    const numbered = (range[1] - range[0]) * LABEL_ROOM > pixels || cutAlike(inside);
    const label = inside.reduce((most, token) => Math.max(most, labelWidth(token)), 2);
    return label + (numbered ? String(range[1]).length + 1 : 0);
  };
  return { rows: longest(rows, tokens.rows), cols: longest(cols, tokens.cols) };
}

/** The cells as shares of what the end of the colour scale stands for: the head's largest, or that of each row. */
function onScale({ z, largest }, scale) {
  if (scale !== 'row' && largest === 1) return z;
  return z.map((row) => {
    const end = (scale === 'row' ? row.reduce((most, value) => Math.max(most, value ?? 0), 0) : largest) || 1;
    return row.map((value) => (value === null ? null : value / end));
  });
}

/** Plotly's trace for a window. */
export function traceOf(window, scheme, scale) {
  return {
    type: 'heatmap', z: onScale(window, scale), ...placement(window), zmin: 0, zmax: 1, zauto: false, zsmooth: false,
    colorscale: plotlyScale(scheme, scale), showscale: false, hoverinfo: 'skip', connectgaps: false, hoverongaps: false,
  };
}

/** The names of both axes above the plot, where no label lies. */
function axisNames({ query, key }, rowHeight, ink) {
  const name = { xref: 'paper', yref: 'paper', y: 1, yanchor: 'bottom', yshift: Math.max(-1, Math.ceil(HALF_LABEL - 1 - rowHeight / 2)), showarrow: false, font: { size: 11, color: ink.quiet } };
  return [{ ...name, text: query, x: 0, xanchor: 'right', xshift: -2 }, { ...name, text: key, x: 1, xanchor: 'right' }];
}

/** Plotly's layout for a place, with labels of `tokens.rows` down and `tokens.cols` across; `names` are the axes' own. */
export function layoutOf(place, size, tokens, names, ink) {
  const { margin, rows, cols } = place;
  return {
    width: size.width, height: size.height, autosize: false,
    margin: {
      l: margin.left, t: margin.top, r: size.width - margin.left - place.width, b: size.height - margin.top - place.height, pad: 0,
    },
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', dragmode: false, hovermode: false, showlegend: false,
    font: { family: ink.font, color: ink.strong }, annotations: axisNames(names, place.height / (rows[1] - rows[0]), ink),
    xaxis: { ...axis(cols, place.width, tokens.cols, ink), range: [cols[0] - 0.5, cols[1] - 0.5], tickangle: -60, side: 'bottom' },
    yaxis: { ...axis(rows, place.height, tokens.rows, ink), range: [rows[1] - 0.5, rows[0] - 0.5] },
  };
}
