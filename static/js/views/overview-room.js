/** How much room the overview has on this screen, and what lies where in it. Sets the width of its column. */

import { aspectOf, layoutOverview, narrowHeight, wishedWidth } from '../overview-layout.js';

const WIDE = matchMedia('(min-width: 1100px)');
const TWO_COLUMNS = matchMedia('(min-width: 600px)');
const SHARE = { tall: 0.34, short: 0.37, narrow: 0.5 }; // of the page's width that the overview may take
const STEADY = { reach: true, aspect: 1 };
const SHORT = 0.45; // of the screen's height: thumbnails that fill less leave the room under them to the text

const paddingOf = (section) => {
  const { paddingLeft, paddingRight } = getComputedStyle(section);
  return parseFloat(paddingLeft) + parseFloat(paddingRight);
};

/**
 * The layout with layers down and heads across. `steady`: the same width with or without reach, so that changing the site
 * moves nothing sideways.
 */
export function arrange({ section, heads, site, reach, steady }) {
  const room = { layers: site.n_layers, heads: site.n_heads, reach, aspect: aspectOf(site.query_len, site.key_len) };
  const padding = paddingOf(section);
  const most = innerWidth * (WIDE.matches ? SHARE.tall : SHARE.narrow) - padding;
  const short = TWO_COLUMNS.matches && layoutOverview({ ...room, width: most, height: innerHeight }).height < innerHeight * SHORT;
  section.parentElement.classList.toggle('is-short', short);
  const height = WIDE.matches && !short ? heads.clientHeight : narrowHeight(site.n_layers, innerHeight);
  if (!TWO_COLUMNS.matches) return layoutOverview({ ...room, width: heads.clientWidth, height });
  const share = WIDE.matches ? (short ? SHARE.short : SHARE.tall) : SHARE.narrow;
  const width = Math.min(wishedWidth({ ...room, height, ...(steady ? STEADY : {}) }) + padding, innerWidth * share);
  document.documentElement.style.setProperty('--overview-width', `${Math.ceil(width)}px`);
  return layoutOverview({ ...room, width: Math.max(width, WIDE.matches ? section.clientWidth : 0) - padding, height });
}

/** {width, height, aspect} of the room for thumbnails in order of a score. */
export function rankedRoom({ heads, site }) {
  return { width: heads.clientWidth, height: heads.clientHeight, aspect: aspectOf(site.query_len, site.key_len) };
}
