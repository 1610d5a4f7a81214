/** The role of the head on the screen, with the numbers that say so. Listens to heads, finder, view, preview, run. */

import { el, fill, ref } from '../dom.js';
import { entryOf, figureOf, roleOf } from '../finder.js';
import { fixedText, t } from '../i18n.js';
import { finished, shownHead } from '../select.js';
import { roleName, scoreName } from './finder-bar.js';

/** As many digits as the threshold needs: 0.297 is not 0.3. */
const digits = (value) => fixedText(value, 3);

/** A number stays on the line of the word before it. */
const unbroken = (words) => words.replaceAll(/ (?=[−-]?\d)/g, '\u00a0');

const sinkParts = ({ role }) => role.sinks.map((name) => el('b', { title: scoreName(name) }, `${t(`sink.${name}`)} ${digits(role.taken[name])}`));

/** The figures behind a role; of what is left without the sink where the role was read from that. */
function basis(entry, role) {
  if (role.name === 'sink') return t('head.sink_only');
  if (role.name === 'uniform') return ofLeft(role, t('head.uniform', { n: digits(figureOf(entry, 'entropy', role.of).value) }));
  if (!role.best) return null;
  const { value, chance, corrected } = figureOf(entry, role.best, role.of);
  const numbers = t('head.basis', { corrected: digits(corrected), score: digits(value), chance: digits(chance) });
  const which = role.strong ? numbers : t('head.strongest', { name: scoreName(role.best), numbers });
  return ofLeft(role, which);
}

const ofLeft = ({ of }, numbers) => (of === 'all' ? numbers : t(`head.without_${of}`, { numbers }));

function parts(entry, threshold) {
  const role = roleOf(entry, threshold);
  const sinks = sinkParts(entry);
  const name = sinks.length ? t('head.otherwise', { role: roleName(role.name) }) : roleName(role.name);
  const words = basis(entry, role);
  return [...sinks, role.name === 'sink' ? null : el('b', {}, name), words ? el('span', { class: 'aside' }, unbroken(words)) : null];
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
