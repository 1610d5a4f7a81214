/** Puts the page together: messages, the store, controllers that ask the server, views that draw. No logic of its own. */

import { getMessages } from './api.js';
import { controlAddress } from './controllers/address.js';
import { controlCount } from './controllers/count.js';
import { controlDraft } from './controllers/draft.js';
import { controlFinder } from './controllers/finder.js';
import { controlFirst } from './controllers/first.js';
import { controlKeyboard } from './controllers/keyboard.js';
import { controlLines } from './controllers/lines.js';
import { controlLinks } from './controllers/links.js';
import { controlMisfits } from './controllers/misfits.js';
import { controlModels } from './controllers/models.js';
import { controlPictures } from './controllers/pictures.js';
import { controlReports } from './controllers/reports.js';
import { controlRecent } from './controllers/recent.js';
import { controlReference } from './controllers/reference.js';
import { controlRuns } from './controllers/runs.js';
import { controlUnits } from './controllers/units.js';
import { controlView } from './controllers/view.js';
import { controlWindows } from './controllers/windows.js';
import { ref } from './dom.js';
import { setMessages } from './i18n.js';
import { createStore } from './store.js';
import { mountAlike } from './views/alike.js';
import { mountBar } from './views/bar.js';
import { mountCompareLink } from './views/compare-link.js';
import { mountCompose } from './views/compose.js';
import { exampleFor, mountFields } from './views/fields.js';
import { mountFinderBar } from './views/finder-bar.js';
import { mountHeadFigures } from './views/head-figures.js';
import { mountHeadsShort } from './views/heads-short.js';
import { mountHeadsTrouble } from './views/heads-trouble.js';
import { mountHeadTools } from './views/head-tools.js';
import { mountHelp } from './views/help.js';
import { mountLayers } from './views/layers.js';
import { mountLensTools } from './views/lens-tools.js';
import { mountLegend } from './views/legend.js';
import { mountLinks } from './views/links.js';
import { mountMap } from './views/map.js';
import { mountModels } from './views/models.js';
import { mountOverview } from './views/overview.js';
import { mountOverviewState } from './views/overview-state.js';
import { mountReadout } from './views/readout.js';
import { mountReference } from './views/reference.js';
import { mountRole } from './views/role.js';
import { mountScatter } from './views/scatter.js';
import { mountSites } from './views/sites.js';
import { mountStrip } from './views/strip.js';
import { mountTable } from './views/table.js';
import { mountTabs } from './views/tabs.js';
import { mountTopWeights } from './views/top-weights.js';
import { mountTrust } from './views/trust.js';

const VIEWS = [
  mountBar, mountCompareLink, mountCompose, mountFields, mountModels, mountSites, mountStrip, mountLinks, mountTrust, mountOverview, mountOverviewState,
  mountTabs, mountHeadsTrouble, mountHeadsShort, mountFinderBar, mountReference, mountTable, mountScatter, mountAlike, mountLayers, mountRole, mountHeadFigures,
  mountHeadTools, mountLensTools, mountLegend, mountMap, mountReadout, mountTopWeights, mountHelp,
];

const page = document.documentElement;
setMessages(await getMessages(page.dataset.messages), page.lang);
const store = createStore();
controlView(store);
controlFinder(store);
controlRuns(store);
for (const mount of VIEWS) mount(document, store);
controlRecent(store);
controlReference(store);
controlDraft(store);
controlCount(store);
controlPictures(store);
controlReports(store);
controlUnits(store);
controlWindows(store);
controlLines(store);
controlLinks(store);
controlMisfits(store);
controlAddress(store);
controlFirst(store, { exampleFor: (id) => exampleFor(ref(document, 'examples'), id) });
controlModels(store);
controlKeyboard(store, { focusText: () => ref(document, 'text').focus() });
