/**
 * The switch between figures of this text and of the reference texts, with what the latter need: computing, progress, cancelling.
 * Where a view does not follow it, that is said. Listens to reference, finder, run, heads; emits figures-of, reference-compute,
 * reference-cancel.
 */

import { el, ref, refill } from '../dom.js';
import { errorText } from '../errors.js';
import { OWN_TABS } from '../finder.js';
import { t, whole } from '../i18n.js';
import { finished } from '../select.js';
import { mountSegments } from './segments.js';

const ON_TABS = ['table', 'scatter'];
/** One key for all of them: where one takes the place of another, it takes the focus too. */
const button = (intention, key) => el('button', { type: 'button', class: 'small-button', 'data-emit': intention, 'data-key': 'act' }, t(key));

/** What is shown while it runs. Made once: a button that is made anew at every step can be missed, and loses the focus. */
function runningParts() {
  const words = el('span');
  const bar = el('progress', { class: 'progress', 'aria-label': t('reference.running') });
  return {
    nodes: [words, bar, button('reference-cancel', 'run.cancel')],
    update(progress) {
      const { done = 0, total = 0, queue_position: queued = null } = progress ?? {};
      const said = queued > 1 ? t('progress.queued', { n: whole(queued) }) : t('reference.running');
      if (words.textContent !== said) words.textContent = said; // it is read out
      if (total) bar.max = total;
      if (total) bar.value = done;
      else bar.removeAttribute('value');
    },
  };
}

function words({ status, texts, error }, tab) {
  switch (status) {
    case 'ready':
      return [t(tab === 'pictures' ? 'reference.over_pictures' : 'reference.over', { n: whole(texts.length), names: texts.map(({ name }) => t(`reference.text.${name}`)).join(t('list.comma')) })];
    case 'absent':
      return [el('span', {}, t('reference.absent')), button('reference-compute', 'reference.compute')];
    case 'error':
      return [el('span', {}, errorText(error)), button('reference-compute', 'run.again')];
    default:
      return [t('finder.loading')];
  }
}

/** Which sentence says what a view shows that stays with this text while the heads' figures are of others. */
const ownNote = ({ tab, view }) => (tab === 'alike' && view === 'points' ? 'reference.own_places' : 'reference.own_view');

/** Mounts the switch. */
export function mountReference(root, store) {
  const [box, choice, state] = ['reference', 'figures-of', 'reference-state'].map((name) => ref(root, name));
  const running = runningParts();
  const until = el('span', { class: 'quiet' }, t('reference.until'));
  let adrift = false; // the button that had the focus is gone, and the next one is to have it
  let built = [];

  mountSegments(choice, store, ({ reference }) => (reference.on ? 'reference' : 'text'), (source) => store.emit('figures-of', { source }), ['reference']);
  state.addEventListener('click', ({ target }) => target.dataset.emit && store.emit(target.dataset.emit));

  function show(nodes, ready) {
    adrift = !refill(state, nodes) || adrift;
    const next = state.querySelector('button') ?? (ready ? choice.querySelector('[aria-pressed="true"]') : null);
    if (!adrift || !next) return;
    if (root.activeElement === root.body) next.focus();
    adrift = false;
  }

  store.subscribe(['reference', 'finder', 'run', 'heads'], (now) => {
    const { reference, finder, heads } = now;
    const apart = Boolean(heads.of); // the figures of heads are not of the shown text
    const own = OWN_TABS.includes(finder.tab);
    box.hidden = !finished(now) || (own ? !apart : !ON_TABS.includes(finder.tab) && !reference.on);
    box.classList.toggle('is-note', own);
    ref(root, 'figures-note').hidden = !apart;
    running.update(reference.progress);
    const note = own && apart ? ownNote(finder) : null;
    const wanted = [note, finder.tab === 'pictures', reference.on, reference.status, reference.texts, reference.error];
    if (wanted.every((value, at) => value === built[at])) return;
    built = wanted;
    const ready = reference.status === 'ready';
    const parts = reference.status === 'running' ? running.nodes : words(reference, finder.tab);
    show(note ? t(note) : !reference.on ? [] : ready ? parts : [...parts, until], ready);
  });
}
