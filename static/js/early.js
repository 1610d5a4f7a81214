/** Puts the chosen theme on the page before it is first drawn. */

import { applyTheme, savedTheme } from './theme.js';

applyTheme(savedTheme());
