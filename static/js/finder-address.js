/** The finder's part of the address's fragment, and of which texts its figures are. What has its usual value is left out. Pure. */

import { COLUMNS, FILTERS, FINDER, MEASURES, SHARES, TABS, VIEWS } from './finder.js';

const SCORES = ['best', 'pairs', ...SHARES, ...MEASURES];
const POINTS = [...SHARES, ...MEASURES];

const unless = (usual, value) => (value === usual ? null : value);

/** Fields of the fragment, null where nothing is to be written. */
export function finderFields({ finder, reference }) {
  const sorting = `${finder.down ? '-' : ''}${finder.column}`;
  return {
    heads: unless(FINDER.tab, finder.tab),
    score: unless(FINDER.score, finder.score),
    sort: unless(FINDER.column, sorting),
    role: finder.role,
    layers: finder.layers ? finder.layers.join('-') : null,
    threshold: unless(FINDER.threshold, finder.threshold),
    of: unless(FINDER.version, finder.version),
    x: unless(FINDER.x, finder.x),
    y: unless(FINDER.y, finder.y),
    colour: unless(FINDER.colour, finder.colour),
    alike: unless(FINDER.view, finder.view),
    figures: reference.on ? 'reference' : null,
  };
}

const oneOf = (text, choices, usual) => (choices.includes(text) ? text : usual);

function readLayers(text) {
  const match = /^(\d+)-(\d+)$/.exec(text ?? '');
  return match && Number(match[1]) <= Number(match[2]) ? [Number(match[1]), Number(match[2])] : null;
}

/** A finder whose layers all exist in this site; a filter of layers that it does not have, or that leaves out none, is none. */
export function clampFinder(finder, { n_layers: count }) {
  if (!finder.layers || (finder.layers[1] < count && finder.layers.join() !== `0,${count - 1}`)) return finder;
  const [low, high] = [finder.layers[0], Math.min(finder.layers[1], count - 1)];
  return { ...finder, layers: low >= count || (low === 0 && high === count - 1) ? null : [low, high] };
}

/** Whether a fragment asks for the figures over the reference texts. */
export const readFigures = (fragment) => new URLSearchParams(fragment.replace(/^#/, '')).get('figures') === 'reference';

/** The finder of a fragment; what is ill-formed gets its usual value. */
export function readFinder(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ''));
  const sort = fields.get('sort') ?? FINDER.column;
  const threshold = Number(fields.get('threshold'));
  return {
    tab: oneOf(fields.get('heads'), TABS, FINDER.tab),
    score: oneOf(fields.get('score'), SCORES, FINDER.score),
    column: oneOf(sort.replace(/^-/, ''), COLUMNS, FINDER.column),
    down: sort.startsWith('-'),
    role: oneOf(fields.get('role'), FILTERS, null),
    layers: readLayers(fields.get('layers')),
    threshold: threshold >= 0.1 && threshold <= 0.9 ? threshold : FINDER.threshold,
    version: oneOf(fields.get('of'), ['all', 'first'], FINDER.version),
    x: oneOf(fields.get('x'), POINTS, FINDER.x),
    y: oneOf(fields.get('y'), POINTS, FINDER.y),
    colour: oneOf(fields.get('colour'), ['layer', 'role'], FINDER.colour),
    view: oneOf(fields.get('alike'), VIEWS, FINDER.view),
  };
}
