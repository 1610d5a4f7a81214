/** The comparison's state as the address's fragment, and back. Pure: it reads and writes strings only. */

import { readIndex, readSpan, spanText } from '../address-fields.js';
import { SIDES } from './state.js';

/** `#a=…&b=…&layer_a=…`; what is not known is left out. `ids` are {a, b}; `view` as in the page's state. */
export function formatCompare(ids, view) {
  const fields = Object.fromEntries(SIDES.flatMap((side) => [
    [side, ids[side]], [`site_${side}`, view[side]?.site], [`layer_${side}`, view[side]?.layer], [`head_${side}`, view[side]?.head],
  ]));
  const rest = { rows: spanText(view.rows), cols: spanText(view.cols), scale: view.scale === 'linear' ? 'linear' : null };
  const given = Object.entries({ ...fields, ...rest }).filter(([, value]) => value !== null && value !== undefined);
  return given.length ? `#${new URLSearchParams(given)}` : '';
}

/** {ids: {a, b}, view} of a fragment; a layer or head that is not named is null. */
export function parseCompare(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ''));
  const side = (name) => ({
    site: fields.get(`site_${name}`) || null, layer: readIndex(fields.get(`layer_${name}`)), head: readIndex(fields.get(`head_${name}`)),
  });
  return {
    ids: Object.fromEntries(SIDES.map((name) => [name, fields.get(name) || null])),
    view: {
      a: side('a'), b: side('b'), rows: readSpan(fields.get('rows')), cols: readSpan(fields.get('cols')),
      scale: fields.get('scale') === 'linear' ? 'linear' : 'sqrt',
    },
  };
}
