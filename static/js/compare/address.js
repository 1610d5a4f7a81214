/** The comparison's state as the address's fragment, and back. Pure: it reads and writes strings only. */

import { changed, readIndex, readSpan, spanText, unlike } from '../address-fields.js';
import { SIDES } from './state.js';

const placeOf = (view, side, place = view[side]) =>
  ({ [`site_${side}`]: place?.site, [`layer_${side}`]: place?.layer, [`head_${side}`]: place?.head });
const rangeOf = ({ rows, cols }) => ({ rows: spanText(rows), cols: spanText(cols) });

const fieldsOf = (view) =>
  ({ ...placeOf(view, 'a'), ...placeOf(view, 'b'), ...rangeOf(view), scale: view.scale === 'linear' ? 'linear' : null });

/** `#a=…&b=…&layer_a=…`; what is not known is left out. `ids` are {a, b}; `view` as in the page's state. */
export function formatCompare(ids, view) {
  const runs = Object.fromEntries(SIDES.map((side) => [side, ids[side]]));
  const isGiven = ([, value]) => value !== null && value !== undefined;
  const given = Object.entries({ ...runs, ...fieldsOf(view) }).filter(isGiven);
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

/** The fields, as name=value, that could not be read. */
export const unreadCompare = (fragment) => unlike(fragment, fieldsOf(parseCompare(fragment).view), { scale: 'sqrt' });

/** The fields of a side, 'a' or 'b', or of the 'range' that are shown otherwise than they stand in the fragment. */
export function unfitCompare(fragment, shown, part) {
  const fields = (view) => (part === 'range' ? rangeOf(view) : placeOf(view, part));
  return changed(fragment, fields(parseCompare(fragment).view), fields(shown));
}
