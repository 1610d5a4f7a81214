/** What stands where something could not be loaded: the reason, and a button that asks again. Emits retry-figures, or what it is given. */

import { el } from '../dom.js';
import { errorText } from '../errors.js';
import { t } from '../i18n.js';

/** Where the focus goes: the box that the button lies in, else the tab of its panel. */
function homeOf(button) {
  const panel = button.closest('[role="tabpanel"]');
  return button.closest('[tabindex="0"]') ?? (panel && button.ownerDocument.getElementById(panel.getAttribute('aria-labelledby')));
}

/** A button that emits this intention. It goes away once it is pressed: the focus is handed on before, to what `home` gives where there is one. */
export function retryButton(store, intention = 'retry-figures', home = null) {
  const press = ({ currentTarget }) => {
    (home?.() ?? homeOf(currentTarget))?.focus({ preventScroll: true });
    store.emit(intention);
  };
  return el('button', { type: 'button', class: 'small-button', 'data-key': 'retry', onclick: press }, t('run.again'));
}

/** The words and the button for the figures of heads; `role` is null where what they lie in tells of changes itself. */
export const figuresFailed = (store, { home = null, role = 'alert' } = {}) =>
  [el('span', { role }, t('finder.failed_why', { why: errorText(store.state.heads.error) })), ' ', retryButton(store, 'retry-figures', home)];
