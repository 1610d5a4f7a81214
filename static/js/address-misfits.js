/**
 * What of a link to a run the page shows otherwise than it stands there, each as name=value: what could not be read, and
 * what the run or the server does not have. Pure.
 */

import { parseAddress, viewFields } from './address.js';
import { changed, unlike } from './address-fields.js';
import { FINDER } from './finder.js';
import { finderFields, readFigures, readFinder } from './finder-address.js';
import { implementationsOf } from './inputs.js';
import { linksText, readLinks, readSides } from './links.js';

/** What a field that is left out, where it has its usual value, stands for. */
const USUAL = {
  dir: 'row', pool: 'max', scale: 'sqrt', lens: 'raw', unit: 'token', special: '1', truncate: 'error',
  heads: FINDER.tab, score: FINDER.score, sort: FINDER.column, threshold: FINDER.threshold, of: FINDER.version,
  x: FINDER.x, y: FINDER.y, colour: FINDER.colour, alike: FINDER.view,
};

const finderOf = (fragment, finder = readFinder(fragment)) => finderFields({ finder, reference: { on: readFigures(fragment) } });

/** The fields that could not be read. */
export function unreadFields(fragment) {
  const { view, special, truncate } = parseAddress(fragment);
  const links = { pairs: linksText(readLinks(fragment)), sides: readSides(fragment)?.replace('>', '-') };
  const options = { special: special ? '1' : '0', truncate };
  return unlike(fragment, { ...viewFields(view), ...finderOf(fragment), ...links, ...options }, USUAL);
}

/** The fields that the run that is shown does not have so. A range that is all there is stands for no range. */
export function unfitFields(fragment, state, site) {
  const { view } = parseAddress(fragment);
  const length = { rows: site.query_len, cols: site.key_len };
  const asked = { ...view };
  for (const axis of ['rows', 'cols']) if (view[axis]?.join() === `0,${length[axis]}`) asked[axis] = state.view[axis];
  const finder = readFinder(fragment);
  if (finder.layers?.join() === `0,${site.n_layers - 1}`) finder.layers = state.finder.layers;
  const shown = { ...viewFields(state.view), ...finderFields(state) };
  return changed(fragment, { ...viewFields(asked), ...finderOf(fragment, finder) }, shown);
}

/** The fields of model and implementation that this server does not have; `list` are its models. */
export function unknownFields(fragment, list) {
  const { model: id, implementation } = parseAddress(fragment);
  const model = list.find((one) => one.id === id);
  if (!model) return unlike(fragment, { model: null });
  return unlike(fragment, { implementation: implementationsOf(model).includes(implementation) ? implementation : null });
}
