/**
 * Fields that only some models take: a second text, a target text, and the code that runs the model. Each is shown only
 * where it works. Listens to pair, target, implementation, models, modelId; emits type, implementation, run.
 */

import { el, fill, ref } from '../dom.js';
import { has, t } from '../i18n.js';
import { implementationOf, implementationsOf, takesPair, takesTarget } from '../inputs.js';
import { chosenModel } from '../select.js';

/** Connects a text field to one text of the state. ⌘/Ctrl Enter runs, Escape leaves it. */
export function mountField(area, store, field) {
  area.addEventListener('input', () => store.emit('type', { text: area.value, field }));
  area.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) store.emit('run');
    if (event.key === 'Escape') area.blur();
  });
  store.subscribe([field], ({ [field]: text }) => {
    if (area.value !== text) area.value = text;
  });
}

/** The code that runs a model, in words. */
export const nameOfCode = (code) => (has(`implementation.${code}`) ? t(`implementation.${code}`) : code);

/** The examples that are made for a model, where there are any; else the ones for every model. */
function examplesFor(group, id) {
  const buttons = [...group.querySelectorAll('[data-src]')];
  const own = buttons.filter((button) => button.dataset.for === id);
  return own.length ? own : buttons.filter((button) => button.dataset.for === undefined);
}

/** Address of the first example for a model. */
export const exampleFor = (group, id) => examplesFor(group, id)[0].dataset.src;

/** Mounts the fields. */
export function mountFields(root, store) {
  const choice = ref(root, 'implementation');
  const examples = ref(root, 'examples');
  mountField(ref(root, 'pair'), store, 'pair');
  mountField(ref(root, 'target'), store, 'target');
  choice.addEventListener('change', () => store.emit('implementation', { name: choice.value }));

  store.subscribe(['models', 'modelId'], (state) => {
    const model = chosenModel(state);
    const codes = implementationsOf(model);
    ref(root, 'pair-field').hidden = !takesPair(model);
    ref(root, 'target-field').hidden = !takesTarget(model);
    ref(root, 'implementation-field').hidden = codes.length < 2;
    fill(choice, codes.map((code) => el('option', { value: code }, nameOfCode(code))));
    const shown = examplesFor(examples, state.modelId);
    for (const button of examples.children) button.hidden = !shown.includes(button);
  });
  store.subscribe(['models', 'modelId', 'implementation'], (state) => {
    choice.value = implementationOf(state) ?? '';
  });
}
