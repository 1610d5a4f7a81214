/** The comparison stage by stage: a finding in words, and one row of bars for each layer. */

import { el, fill, ref } from '../dom.js';
import { t, whole } from '../i18n.js';
import { largestOf, placeOf, rowsOf, ticksOf } from '../stage-scale.js';

const nameOf = (stage) => t(`stages.stage.${stage.stage}`);

function number(value) {
  if (value === null) return t('stages.no_number');
  if (value === 0) return '0';
  return value >= 0.001 && value < 1000 ? value.toPrecision(2) : value.toExponential(1);
}

const powerText = (value) => value.toExponential(0); // tolerances are powers of ten

const placeName = (stage) =>
  (stage.layer === null ? nameOf(stage) : t('stages.where', { layer: whole(stage.layer), stage: nameOf(stage) }));

function finding(found, first) {
  const stage = first ?? largestOf(found.stages);
  const values = {
    where: placeName(stage), relative: number(stage.relative), tolerance: powerText(found.tolerance), dtype: found.dtype,
    count: whole(found.stages.length),
  };
  if (!first) return t('stages.same', values);
  return t(first.relative === null ? 'stages.parted_nan' : 'stages.parted', values);
}

function bar(stage, dtype) {
  const filled = el('span', { class: 'stage-bar' });
  filled.style.setProperty('--at', placeOf(stage.relative, dtype));
  return el('span', { class: 'stage-track', 'aria-hidden': 'true' }, filled);
}

function cell(stage, dtype, isFirst, attributes = {}) {
  const title = t('stages.cell', { where: placeName(stage), absolute: number(stage.absolute), relative: number(stage.relative) });
  const look = ['stage', stage.over ? 'is-over' : null, isFirst ? 'is-first' : null].filter(Boolean).join(' ');
  return el('td', { class: look, role: 'cell', title, 'data-name': stage.name, 'data-label': nameOf(stage), ...attributes },
    bar(stage, dtype),
    el('span', { class: 'stage-value' },
      stage.over ? el('span', { class: 'stage-sign' }, el('span', { 'aria-hidden': 'true' }, '✗ '), el('span', { class: 'visually-hidden' }, t('stages.over'))) : null,
      el('data', { value: String(stage.relative) }, number(stage.relative)),
      isFirst ? el('span', { class: 'stage-first' }, t('stages.first')) : null));
}

function row({ layer, stages }, found, first, columns) {
  const isOutside = layer === null;
  const [only] = stages;
  const id = isOutside ? `stage-${only.stage}` : null;
  // A stage outside of the layers lies across all columns: it is none of what they are headed.
  const across = isOutside ? { colspan: columns, headers: id } : {};
  const heading = isOutside ? nameOf(only) : t('stages.layer', { layer: whole(layer) });
  return el('tr', { role: 'row', class: isOutside ? 'is-outside' : null },
    el('th', { scope: 'row', role: 'rowheader', id }, heading),
    stages.map((stage) => cell(stage, found.dtype, stage === first, across)));
}

function scale(root, found) {
  const line = el('span', { class: 'scale-tolerance' }, t('stages.tolerance', { tolerance: powerText(found.tolerance) }));
  const ticks = ticksOf(found.dtype).map((power) => {
    const tick = el('span', { class: 'scale-tick' }, power === 0 ? '1' : `1e${power}`);
    tick.style.setProperty('--at', placeOf(10 ** power, found.dtype));
    return tick;
  });
  fill(ref(root, 'scale'), el('span', { class: 'scale-name' }, t('stages.axis')), el('span', { class: 'scale-line' }, ticks, line));
}

/** Shows a comparison as the API gives it. */
export function showStages(root, found) {
  const first = found.stages.find((stage) => stage.name === found.first_over) ?? null;
  const words = ref(root, 'finding');
  words.className = `finding is-${first ? 'fail' : 'pass'}`;
  const reveal = () => root.querySelector('.is-first').scrollIntoView({ block: 'center' });
  fill(words, `${first ? '✗' : '✓'} ${finding(found, first)} `,
    first ? el('button', { type: 'button', class: 'small-button', onclick: reveal }, t('stages.show')) : null);
  const cause = ref(root, 'cause');
  cause.hidden = !first;
  cause.textContent = first ? t(`stages.cause.${first.stage}`) : '';

  const rows = rowsOf(found.stages);
  const inLayer = rows.find((one) => one.layer !== null)?.stages ?? [];
  const table = ref(root, 'table');
  const head = el('tr', { role: 'row' }, el('td', { role: 'cell' }),
    inLayer.map((stage) => el('th', { scope: 'col', role: 'columnheader' }, nameOf(stage))));
  fill(table, el('caption', { class: 'visually-hidden' }, t('stages.axis')),
    el('thead', { role: 'rowgroup' }, head),
    el('tbody', { role: 'rowgroup' }, rows.map((one) => row(one, found, first, inLayer.length))));
  scale(root, found);
  for (const name of ['table', 'scale']) {
    ref(root, name).style.setProperty('--tolerance', placeOf(found.tolerance, found.dtype));
    ref(root, name).hidden = false;
  }
}
