/**
 * Says over the views of all heads that the text is too short for any figure of any head, and offers one that shows them on
 * the same model. Listens to run, heads, finder; emits model, example.
 */

import { el, fill, ref } from '../dom.js';
import { t } from '../i18n.js';
import { finished } from '../select.js';
import { exampleFor } from './fields.js';

/** Whether nothing of any head can be told: then every view of figures is empty. */
const isShort = ({ status, list }) => status === 'ready' && list.length > 0 && list.every((head) => head.entropy === null && !head.role?.sinks.length);

/** Mounts the line. */
export function mountHeadsShort(root, store) {
  const line = el('p', { class: 'fine heads-short', 'data-ref': 'heads-short', role: 'status', hidden: true });
  ref(root, 'banner').after(line);
  const press = () => {
    const { model } = finished(store.state);
    if (store.state.modelId !== model.id) store.emit('model', { id: model.id });
    store.emit('example', { src: exampleFor(ref(root, 'examples'), model.id), run: true });
  };
  fill(line, t('finder.too_short'), ' ', el('button', { type: 'button', class: 'small-button', 'data-key': 'longer', onclick: press }, t('finder.run_longer')));
  store.subscribe(['run', 'heads', 'reference'], (state) => {
    line.hidden = !finished(state) || !isShort(state.heads);
  });
}
