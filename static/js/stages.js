/** The page /stages: asks for the comparison of the run that the address names, and shows it. */

import { isRunId } from './address-fields.js';
import { parseAddress } from './address.js';
import { compareStages, getMessages } from './api.js';
import { ref } from './dom.js';
import { errorText } from './errors.js';
import { setMessages, t } from './i18n.js';
import { createStore } from './store.js';
import { mountLanguage, mountTheme } from './views/bar.js';
import { showStages } from './views/stages.js';

const page = document.documentElement;
setMessages(await getMessages(page.dataset.messages), page.lang);
mountTheme(ref(document, 'theme'), createStore());
mountLanguage(ref(document, 'language'));

async function show() {
  ref(document, 'back').href = `/${location.hash}`;
  const finding = ref(document, 'finding');
  for (const name of ['table', 'scale', 'cause']) ref(document, name).hidden = true;
  const { run } = parseAddress(location.hash);
  if (!run) {
    finding.textContent = t('stages.no_run');
    return;
  }
  finding.className = 'finding';
  finding.textContent = t('stages.loading');
  try {
    showStages(document, await compareStages(run));
  } catch (error) {
    finding.textContent = error.code === 'run_gone' && !isRunId(run) ? t('stages.broken') : errorText(error);
  }
}

addEventListener('hashchange', show);
await show();
