/** The role of the head on the screen, with the numbers that say so. Listens to heads, finder, view, preview, run. */

import { el, fill, ref } from '../dom.js';
import { entryOf, figureOf, roleOf } from '../finder.js';
import { fixedText, t } from '../i18n.js';
import { finished, shownHead } from '../select.js';
import { roleName, scoreName } from './finder-bar.js';

const two = (value) => fixedText(value, 2);

/** A number stays on the line of the word before it. */
const unbroken = (words) => words.replaceAll(/ (?=[−-]?\d)/g, '\u00a0');

/** What a sink takes; one that the head itself has is no key, so it is no score either. */
const taken = (entry, name) => (name === 'own' ? entry.own_sink : entry.scores[name]?.score) ?? 0;

function sinkParts(entry, { sinks }) {
  return sinks.map((name) => el('b', { title: scoreName(name) }, `${t(`sink.${name}`)} ${two(taken(entry, name))}`));
}

/** The figures behind a role; of what is left without the sink where the role was read from that. */
function basis(entry, role) {
  if (!role.best) return null;
  const { value, chance, corrected } = figureOf(entry, role.best, role.of);
  const numbers = t('head.basis', { corrected: two(corrected), score: two(value), chance: two(chance) });
  const which = role.strong ? numbers : t('head.strongest', { name: scoreName(role.best), numbers });
  return role.of === 'all' ? which : t(`head.without_${role.of}`, { numbers: which });
}

function parts(entry, threshold) {
  const role = roleOf(entry, threshold);
  if (role.name === null) return [el('b', {}, roleName(null))];
  const sinks = sinkParts(entry, role);
  const alone = role.name === 'sink';
  const main = alone ? null : el('b', {}, sinks.length ? t('head.otherwise', { role: roleName(role.name) }) : roleName(role.name));
  const words = alone ? t('head.sink_only') : role.name === 'uniform' ? null : basis(entry, role);
  return [...sinks, main, words ? el('span', { class: 'aside' }, unbroken(words)) : null];
}

/** Rollout is of all heads up to a layer: a role of the chosen one would be read as of the picture. */
const overHeads = ({ layer }) => (Number.isInteger(layer) ? el('span', { class: 'aside' }, t(layer ? 'head.rollout' : 'head.rollout_first', { layer })) : null);

/** Mounts the line beside the head's name. */
export function mountRole(root, store) {
  const line = ref(root, 'score');
  store.subscribe(['heads', 'finder', 'view', 'preview', 'run'], (state) => {
    if (finished(state) && state.view.lens === 'rollout') {
      fill(line, overHeads(shownHead(state)));
      return;
    }
    const entry = finished(state) ? entryOf(state, shownHead(state)) : undefined;
    fill(line, entry ? parts(entry, state.finder.threshold) : null);
  });
}
