/**
 * The correctness card in words, and its failures on the pictures themselves.
 * Listens to run, models; emits check. Green and red live here only; each sign has its word beside it.
 */

import { el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { figure, has, t, whole } from '../i18n.js';
import { finished } from '../select.js';
import { nameOfCode } from './fields.js';
import { noteOf } from './models.js';

const SIGNS = { pass: '✓', fail: '✗', not_compared: '–', info: 'i' };

const nameOf = (check) => (has(`check.${check.id}`) ? t(`check.${check.id}`) : check.id);

function valueOf(check) {
  if (check.status === 'not_compared') return t('trust.not_compared');
  if (has(`check.${check.id}.${check.status}`)) return t(`check.${check.id}.${check.status}`);
  if (typeof check.value === 'string' && has(`check.value.${check.value}`)) return t(`check.value.${check.value}`);
  if (check.id === 'weights') return weightsValue(check);
  const bound = check.status === 'fail' && check.bound !== null ? ` ${t('trust.bound', { bound: figure(check.bound) })}` : '';
  const how = `check.how.${check.detail.how}`;
  const part = has(how) ? ` (${t(how, { tokens: whole(check.detail.tokens) })})` : '';
  return `${figure(check.value)}${bound}${part}`;
}

/** How many tensors of the file the model has no place for, the first by name. */
function weightsValue({ value, detail }) {
  const names = detail.without_place ?? [];
  const more = value > names.length ? ' …' : '';
  return value > 0 ? t('check.weights.unused', { n: whole(value), names: `${names.join(', ')}${more}` }) : t('check.weights.noted');
}
/** Whether the model's own kernel has yet to see all tokens: of a long text a run compares the beginning. */
const canCompare = (check) => check.id === 'whole_pass'
  && (check.status === 'not_compared' || has(`check.how.${check.detail.how}`));

function valueCell(check, run, store) {
  const compare = !canCompare(check) ? null
    : el('button', { type: 'button', class: 'link-button', disabled: run.checking, onclick: () => store.emit('check') }, t(run.checking ? 'trust.comparing' : check.status === 'not_compared' ? 'trust.compare' : 'trust.compare_all'));
  return el('span', { class: 'check-value' }, valueOf(check), compare ? ' · ' : null, compare);
}

function line(check, run, store) {
  const explained = has(`check.${check.id}.why`) ? t(`check.${check.id}.why`) : null;
  return el('li', { class: `check is-${check.status}`, title: explained },
    el('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[check.status] ?? ''),
    el('span', { class: 'check-name' }, el('span', { class: 'visually-hidden' }, `${t(`trust.status.${check.status}`)}: `), nameOf(check)),
    valueCell(check, run, store));
}

function banner(card) {
  const failed = card.checks.filter((check) => check.status === 'fail').map(nameOf);
  return failed.length ? t('trust.banner', { checks: failed.join(t('list.comma')) }) : null;
}

/** The card in one line. It says all pass only when nothing was left uncompared. */
function headline({ verdict, checks }) {
  const count = (status) => whole(checks.filter((check) => check.status === status).length);
  return { words: t(`trust.verdict.${verdict}`, { passed: count('pass'), left: count('not_compared') }), look: verdict };
}

/** Whether both our own code and transformers run this model, so that they can be compared stage by stage. */
const hasCounterpart = (state, id) => (state.models.list.find((model) => model.id === id)?.implementations ?? []).length > 1;

/** Mounts the card and both banners. */
export function mountTrust(root, store) {
  const section = ref(root, 'checks').closest('section');
  const banners = [ref(root, 'banner'), ref(root, 'head-banner')];
  store.subscribe(['run', 'models'], (state) => {
    const summary = finished(state);
    const card = summary?.card ?? null;
    section.hidden = !card;
    const warning = card ? banner(card) : null;
    for (const node of banners) {
      node.hidden = !warning;
      fill(node, warning);
    }
    if (!card) return;
    const verdict = ref(root, 'verdict');
    const { words, look } = headline(card);
    verdict.textContent = words;
    verdict.className = `verdict is-${look}`;
    const { checkError } = state.run;
    fill(ref(root, 'checks'), card.checks.map((check) => line(check, state.run, store)),
      checkError ? el('li', { class: 'check-action' }, errorText(checkError)) : null);
    const hasTwo = hasCounterpart(state, summary.model.id);
    const ranBy = ref(root, 'ran-by');
    ranBy.hidden = !hasTwo;
    ranBy.textContent = t('trust.ran_by', { code: nameOfCode(summary.model.implementation) });
    const stages = ref(root, 'stages');
    stages.hidden = !hasTwo;
    stages.querySelector('a').href = `/stages#run=${encodeURIComponent(summary.id)}`;
    const note = noteOf(summary.model);
    ref(root, 'model-note').textContent = note ? t('trust.model', { name: summary.model.name, note }) : '';
  });
}
