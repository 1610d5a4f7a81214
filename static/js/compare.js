/** Puts the page /compare together: messages, the store, controllers that ask the server, views that draw. */

import { getMessages } from './api.js';
import { controlCursor } from './compare/cursor.js';
import { controlData } from './compare/data.js';
import { mountLegend } from './compare/legend.js';
import { mountMap } from './compare/map.js';
import { controlMisfits } from './compare/misfits.js';
import { mountReadout } from './compare/readout.js';
import { controlRuns } from './compare/runs.js';
import { mountSides } from './compare/sides.js';
import { INITIAL } from './compare/state.js';
import { mountTables } from './compare/tables.js';
import { controlView } from './compare/view.js';
import { ref } from './dom.js';
import { setMessages } from './i18n.js';
import { loadPlotly } from './plotly.js';
import { createStore } from './store.js';
import { mountLanguage, mountTheme } from './views/bar.js';
import { mountHelp } from './views/help.js';
import { mountNotice } from './views/notice.js';

const page = document.documentElement;
setMessages(await getMessages(page.dataset.messages), page.lang);
const store = createStore(INITIAL);
mountTheme(ref(document, 'theme'), store);
mountLanguage(ref(document, 'language'));
mountNotice(ref(document, 'notice'), store);
mountHelp(document);
controlData(store);
controlCursor(store);
const begin = controlRuns(store);
controlMisfits(store);
controlView(store, begin);
for (const mount of [mountSides, mountReadout, mountLegend, mountTables]) mount(document, store);
for (const name of ['a', 'd', 'b']) mountMap(document, store, name);
loadPlotly(page.dataset.plotly).then((plotly) => store.set({ plotly }), () => store.set({ plotly: 'failed' }));
