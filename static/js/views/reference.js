/**
 * The switch between figures of this text and of the reference texts, with what the latter need: computing, progress, cancelling.
 * Listens to reference, finder, run; emits figures-of, reference-compute, reference-cancel.
 */

import { el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { t, whole } from '../i18n.js';
import { finished } from '../select.js';
import { mountSegments } from './segments.js';

const ON_TABS = ['table', 'scatter'];
const button = (intention, key) => el('button', { type: 'button', class: 'small-button', 'data-emit': intention }, t(key));

function progressNodes(progress) {
  const { done = 0, total = 0, queue_position: queued = null } = progress ?? {};
  const words = queued > 1 ? t('progress.queued', { n: whole(queued) }) : t('reference.running');
  return [el('span', {}, words), el('progress', { class: 'progress', 'aria-label': t('reference.running'), ...(total ? { value: done, max: total } : {}) }), button('reference-cancel', 'run.cancel')];
}

function words({ on, status, texts, progress, error }) {
  if (!on) return [];
  switch (status) {
    case 'ready':
      return [t('reference.over', { n: whole(texts.length), names: texts.map(({ name }) => t(`reference.text.${name}`)).join(t('list.comma')) })];
    case 'absent':
      return [el('span', {}, t('reference.absent')), button('reference-compute', 'reference.compute')];
    case 'running':
      return progressNodes(progress);
    case 'error':
      return [el('span', {}, errorText(error)), button('reference-compute', 'run.again')];
    default:
      return [t('finder.loading')];
  }
}

/** Mounts the switch. */
export function mountReference(root, store) {
  const box = ref(root, 'reference');
  const state = ref(root, 'reference-state');
  mountSegments(ref(root, 'figures-of'), store, ({ reference }) => (reference.on ? 'reference' : 'text'), (source) => store.emit('figures-of', { source }), ['reference']);
  state.addEventListener('click', ({ target }) => target.dataset.emit && store.emit(target.dataset.emit));
  store.subscribe(['reference', 'finder', 'run'], (now) => {
    const { reference, finder } = now;
    box.hidden = !finished(now) || !(ON_TABS.includes(finder.tab) || reference.on);
    fill(state, words(reference));
    ref(root, 'figures-note').hidden = !reference.on || reference.status !== 'ready';
  });
}
