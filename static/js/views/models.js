/** The model button and its list: names, sizes, states, reasons, downloads. Listens to models, modelId; emits model, download, models. */

import { el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { has, t, whole } from '../i18n.js';
import { chosenModel } from '../select.js';

const percent = (progress) => (typeof progress === 'number' ? ` ${Math.round(progress * 100)} %` : '');

const shape = (model) =>
  model.n_layers ? t('models.shape', { layers: whole(model.n_layers), heads: whole(model.n_heads) })
    : model.state === 'unavailable' ? null : t('models.shape_unknown');

function stateText(model) {
  return model.state === 'ready' ? '' : `${t(`models.state.${model.state}`)}${model.state === 'preparing' ? percent(model.progress) : ''}`;
}

/** What is special about a model, in the page's language where the catalogue has it. */
export const noteOf = (model) => (has(`models.note.${model.id}`) ? t(`models.note.${model.id}`) : model.note);

function facts(model) {
  const kind = has(`models.kind.${model.kind}`) ? t(`models.kind.${model.kind}`) : model.kind;
  const tokens = model.max_tokens ? t('models.tokens', { n: whole(model.max_tokens) }) : null;
  return [shape(model), kind, tokens, model.licence].filter(Boolean).join(' · ');
}

function row(model, chosen, store) {
  const usable = model.state === 'ready' || model.state === 'preparing';
  const radio = el('input', {
    type: 'radio', name: 'model', value: model.id, checked: chosen, disabled: !usable,
    onchange: () => store.emit('model', { id: model.id }),
  });
  const state = stateText(model);
  const label = el('label', { class: 'model-row' }, radio,
    el('span', { class: 'model-text' },
      el('span', { class: 'model-name' }, model.name, state ? el('span', { class: 'tag' }, state) : null),
      el('span', { class: 'fine' }, facts(model)),
      model.reason ? el('span', { class: 'fine model-reason' }, model.reason) : null,
      model.error ? el('span', { class: 'fine model-reason' }, errorText(model.error)) : null,
      noteOf(model) ? el('span', { class: 'fine' }, noteOf(model)) : null));
  const download = model.state !== 'needs_download' || model.reason ? null
    : el('button', { type: 'button', class: 'small-button', onclick: () => store.emit('download', { id: model.id }) }, t('models.download'));
  return el('div', { class: 'model-item' }, label, download);
}

function buttonContent(state) {
  const model = chosenModel(state);
  if (state.models.status === 'error') return [el('span', { class: 'model-name' }, t('models.failed'))];
  if (!model) return [el('span', { class: 'model-name quiet' }, t('models.loading'))];
  const aside = stateText(model) || shape(model);
  const line = el('span', { class: 'model-line' }, el('span', { class: 'model-name' }, model.name), el('span', { class: 'aside' }, aside));
  return [line, el('span', { class: 'chevron', 'aria-hidden': 'true' }, '▾')];
}

/** Mounts the model picker. */
export function mountModels(root, store) {
  const button = ref(root, 'model-button');
  const list = ref(root, 'models');
  list.addEventListener('keydown', (event) => event.key === 'Enter' && event.target.type === 'radio' && list.hidePopover());
  list.addEventListener('click', (event) => event.target.type === 'radio' && event.detail > 0 && list.hidePopover());
  store.subscribe(['models', 'modelId'], (state) => {
    fill(button, buttonContent(state));
    button.setAttribute('aria-label', t('models.button', { name: chosenModel(state)?.name ?? '' }));
    const focused = list.contains(root.activeElement) ? root.activeElement.value : null;
    if (state.models.status === 'error') {
      fill(list, el('p', {}, errorText(state.models.error)), el('button', { type: 'button', class: 'small-button', onclick: () => store.emit('models') }, t('run.again')));
      return;
    }
    fill(list, el('div', { role: 'radiogroup', 'aria-label': t('models.label') }, state.models.list.map((model) => row(model, model.id === state.modelId, store))));
    if (focused) list.querySelector(`input[value="${CSS.escape(focused)}"]`)?.focus();
  });
}
