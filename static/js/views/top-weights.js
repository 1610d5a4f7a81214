/** The largest weights of the shown token's row or column as a table: the pictures in words. Listens to line, view, run. */

import { el, fill, ref } from '../dom.js';
import { t, weightText, whole } from '../i18n.js';
import { labelParts } from '../labels.js';
import { tokenLabel } from '../dom.js';
import { axesOf } from '../select.js';

const SHOWN = 8;

function largest(weights) {
  const found = [];
  weights.forEach((weight, index) => {
    if (weight !== null) found.push({ weight, index });
  });
  return found.sort((one, other) => other.weight - one.weight).slice(0, SHOWN);
}

function table(line, tokens) {
  const head = el('tr', {}, [t('top.token'), t('top.position'), t('top.weight')].map((text) => el('th', { scope: 'col' }, text)));
  const rows = largest(line.weights).map(({ weight, index }) => el('tr', {},
    el('td', {}, tokenLabel(labelParts(tokens[index]))), el('td', { class: 'number' }, whole(index)),
    el('td', { class: 'number' }, weightText(weight))));
  return el('table', {}, el('thead', {}, head), el('tbody', {}, rows));
}

/** Mounts the table. It fills only while it is open. */
export function mountTopWeights(root, store) {
  const details = ref(root, 'top');
  const body = ref(root, 'top-body');
  const title = ref(root, 'top-title');
  function show(state) {
    const { line } = state;
    const { rows, cols } = axesOf(state);
    const [from, to] = line.dir === 'row' ? [rows, cols] : [cols, rows]; // whose line it is, and whose weights it holds
    const token = line.index === null ? null : from[line.index];
    title.replaceChildren();
    if (token) {
      const [before, after = ''] = t(`top.of_${line.dir}`).split('{token}');
      title.append(before, tokenLabel(labelParts(token)), after);
    } else title.append(t('top.label'));
    if (!details.open) return;
    if (line.status === 'ready' && token) fill(body, table(line, to));
    else fill(body, el('p', { class: 'fine' }, t(line.status === 'loading' ? 'figure.loading' : 'top.none')));
  }
  details.addEventListener('toggle', () => show(store.state));
  store.subscribe(['line', 'run'], show);
}
