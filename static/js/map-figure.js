/** The heat map as Plotly's data and layout: integer axes, escaped tick text, one fixed colour scale. Pure. */

import { cutAlike, longestThatFits, tickText, tickWords } from './labels.js';
import { plotlyScale } from './ramp.js';
import { textWidth } from './text-width.js';
import { placement } from './window.js';

const MARGIN = 90; // px, roughly, that labels take of a figure; only to guess whether all of them fit
const LABEL_ROOM = 13; // px that one label needs across its line
const TICK = 11; // px, the size of the letters
const MOST_ROOM = 0.34; // of a figure's side that labels may take: longer ones are cut to it
const HALF_LABEL = 7; // px of a label above the middle of its row

/** Indices to label: as many as fit without touching, those of `always` among them instead of their neighbours. */
function labelled([from, to], pixels, always) {
  const every = Math.max(1, Math.ceil(((to - from) * LABEL_ROOM) / Math.max(1, pixels)));
  const first = Math.ceil(from / every) * every;
  const even = Array.from({ length: Math.max(0, Math.ceil((to - first) / every)) }, (_, at) => first + at * every);
  const kept = always.filter((index) => index >= from && index < to);
  const clear = even.filter((index) => kept.every((other) => Math.abs(index - other) >= every));
  return [...clear, ...kept].sort((one, other) => one - other);
}

/** A token's place on its axis, unless it says another one itself. */
const positionOf = (tokens, index) => (tokens[index].position === undefined ? index : tokens[index].position);

const wide = (text) => textWidth(text, TICK);

/** An axis with labels that have `room` px each; `chosen` is the index of a token that has one whatever the others have, or null. */
function axis([from, to], pixels, tokens, ink, { room, chosen }) {
  const range = [from, Math.min(to, tokens.length)]; // the last cell of a coarse picture may reach beyond
  const tickvals = labelled(range, (pixels * (range[1] - from)) / (to - from), chosen === null ? [] : [chosen]);
  const sparse = (range[1] - from) * LABEL_ROOM > pixels;
  const numbered = sparse || cutAlike(tickvals.map((index) => tokens[index]));
  const text = (index) => {
    const position = numbered ? positionOf(tokens, index) : null;
    return tickText(tokens[index], ink.faint, position, longestThatFits(tokens[index], position, room, wide));
  };
  return {
    tickvals, ticktext: tickvals.map(text),
    tickmode: 'array', type: 'linear', showgrid: false, zeroline: false, ticks: '', automargin: false, showline: false,
    tickfont: { size: TICK, color: ink.strong }, fixedrange: false,
  };
}

/** Pixels that the longest labels down and across take, so that a figure's margins fit; with its position where labels have one. */
export function longestLabels(tokens, rows, cols, { width, height }) {
  const pixels = Math.min(width, height) - MARGIN;
  const longest = (range, list) => {
    const inside = list.slice(...range);
    const numbered = (range[1] - range[0]) * LABEL_ROOM > pixels || cutAlike(inside);
    const number = numbered ? wide(`${range[1]} `) : 0;
    const label = inside.reduce((most, token) => Math.max(most, wide(tickWords(token))), 0);
    return Math.min(label + number, MOST_ROOM * Math.min(width, height));
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

const NONE = { rows: null, cols: null };

/**
 * Plotly's layout for a place, with labels of `tokens.rows` down and `tokens.cols` across; `names` are the axes' own, `chosen`
 * the row and column that always have a label.
 */
export function layoutOf(place, size, tokens, names, ink, chosen = NONE) {
  const { margin, rows, cols, letters } = place;
  return {
    width: size.width, height: size.height, autosize: false,
    margin: {
      l: margin.left, t: margin.top, r: size.width - margin.left - place.width, b: size.height - margin.top - place.height, pad: 0,
    },
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', dragmode: false, hovermode: false, showlegend: false,
    font: { family: ink.font, color: ink.strong }, annotations: axisNames(names, place.height / (rows[1] - rows[0]), ink),
    xaxis: { ...axis(cols, place.width, tokens.cols, ink, { room: letters.cols, chosen: chosen.cols }), range: [cols[0] - 0.5, cols[1] - 0.5], tickangle: -60, side: 'bottom' },
    yaxis: { ...axis(rows, place.height, tokens.rows, ink, { room: letters.rows, chosen: chosen.rows }), range: [rows[1] - 0.5, rows[0] - 0.5] },
  };
}
