/** Pages of words alone, /docs and the error page: their theme and language. */

import { getMessages } from './api.js';
import { ref } from './dom.js';
import { setMessages } from './i18n.js';
import { createStore } from './store.js';
import { mountLanguage, mountTheme } from './views/bar.js';

const page = document.documentElement;
setMessages(await getMessages(page.dataset.messages), page.lang);
mountTheme(ref(document, 'theme'), createStore());
mountLanguage(ref(document, 'language'));
