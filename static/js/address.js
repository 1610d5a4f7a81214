/** The view's state as the address's fragment, and back. Pure: it reads and writes strings only. */

import { readIndex, readSpan, spanText } from './address-fields.js';
import { headBeside } from './select.js';

const LONGEST_TEXT = 2000;
/** Colour scales, what a cell shows, and what rows and columns count; the usual one first. */
export const SCALES = ['sqrt', 'linear', 'log', 'row'];
export const LENSES = ['raw', 'sink_free', 'value', 'output', 'rollout'];
export const UNITS = ['token', 'character', 'word', 'sentence'];
const CUTS = ['cut_head', 'cut_tail'];

const oneOf = (text, choices) => (choices.includes(text) ? text : choices[0]);

/** A view's fields of the fragment; null where the value is the usual one. */
export const viewFields = (view) => ({
  site: view.site,
  layer: view.layer,
  head: view.head,
  token: view.token,
  dir: view.dir === 'row' ? null : view.dir,
  rows: spanText(view.rows),
  cols: spanText(view.cols),
  pool: view.pool === 'max' ? null : view.pool,
  scale: view.scale === 'sqrt' ? null : view.scale,
  lens: view.lens === 'raw' ? null : view.lens,
  unit: view.unit === 'token' ? null : view.unit,
});

/**
 * `#run=…&site=…` for a run and a view; what has its usual value is left out. `finder` are the fields of what the heads'
 * column shows. `withText` adds {text, pair, target, model, implementation, special, truncate}.
 */
export function formatAddress(runId, view, finder = {}, withText = null) {
  if (!runId) return '';
  const fields = {
    run: runId,
    ...viewFields(view),
    ...finder,
    model: withText?.model,
    special: withText?.special === false ? 0 : null,
    truncate: CUTS.includes(withText?.truncate) ? withText.truncate : null,
    implementation: withText?.implementation,
    text: withText?.text,
    pair: withText?.pair || null,
    target: withText?.target || null,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return `#${new URLSearchParams(given)}`;
}

/** {run, view} and what `withText` had of a fragment; ill-formed fields get their usual value, nothing throws. */
export function parseAddress(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ''));
  const token = fields.get('token');
  return {
    run: fields.get('run') || null,
    text: fields.get('text'),
    pair: fields.get('pair') ?? '',
    target: fields.get('target') ?? '',
    model: fields.get('model'),
    implementation: fields.get('implementation'),
    special: fields.get('special') !== '0',
    truncate: oneOf(fields.get('truncate'), ['error', ...CUTS]),
    view: {
      site: fields.get('site') || null,
      layer: readIndex(fields.get('layer')) ?? 0,
      head: readIndex(fields.get('head')) ?? 0,
      token: /^\d+$/.test(token ?? '') ? Number(token) : null,
      dir: oneOf(fields.get('dir'), ['row', 'col']),
      rows: readSpan(fields.get('rows')),
      cols: readSpan(fields.get('cols')),
      pool: oneOf(fields.get('pool'), ['max', 'mean']),
      scale: oneOf(fields.get('scale'), SCALES),
      lens: oneOf(fields.get('lens'), LENSES),
      unit: oneOf(fields.get('unit'), UNITS),
    },
  };
}

/** Whether {text, pair, target} are known, and short enough together to travel in a link. */
export function fitsLink({ text, pair, target }) {
  return Boolean(text) && pair !== null && target !== null && Array.from(text + pair + target).length <= LONGEST_TEXT;
}

/** A view whose indices all exist in this site; what does not exist gets its usual value. */
export function clampView(view, site) {
  const index = (value, count) => (Number.isInteger(value) && value >= count ? count - 1 : value);
  const span = (range, length) => {
    if (!range || range[0] >= length) return null;
    const clipped = [range[0], Math.min(range[1], length)];
    return clipped[0] === 0 && clipped[1] === length ? null : clipped;
  };
  const limit = view.dir === 'row' ? site.query_len : site.key_len;
  return {
    ...view,
    site: site.site,
    layer: index(view.layer, site.n_layers),
    head: headBeside(view.layer, index(view.head, site.n_heads)),
    token: view.token !== null && view.token < limit ? view.token : null,
    rows: span(view.rows, site.query_len),
    cols: span(view.cols, site.key_len),
  };
}
