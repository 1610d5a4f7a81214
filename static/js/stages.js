/** The page /stages: asks for the comparison of the run that the address names, and shows it. */

import { parseAddress } from './address.js';
import { compareStages, getMessages } from './api.js';
import { ref } from './dom.js';
import { errorText } from './errors.js';
import { setMessages, t } from './i18n.js';
import { showStages } from './views/stages.js';

const page = document.documentElement;
setMessages(await getMessages(page.dataset.messages), page.lang);

function pointBack() {
  ref(document, 'back').href = `/${location.hash}`;
  const language = ref(document, 'language');
  language.href = `${language.getAttribute('href').split('#')[0]}${location.hash}`;
}

async function show() {
  pointBack();
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
    finding.textContent = errorText(error);
  }
}

addEventListener('hashchange', show);
await show();
