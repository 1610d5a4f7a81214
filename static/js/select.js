/** Questions about the state that several modules ask. Pure; knows nothing of the page. */

/** The finished run's summary, or null. */
export function finished(state) {
  return state.run.phase === 'done' ? state.run.summary : null;
}

/** Tokens of one side of the run that is shown, 'source' or 'target'; empty while there is none. */
export function tokensOf(state, side) {
  return state.run.summary?.tokens?.[side] ?? [];
}

/** The site that is shown, with its masks and steps; null before a run. */
export function siteOf(state) {
  const sites = state.run.summary?.sites ?? [];
  return sites.find((site) => site.site === state.view.site) ?? sites[0] ?? null;
}

/** Which side's tokens the rows and the columns of a site are: 'source' or 'target', as {rows, cols}. */
export function sidesOf(site, hasTarget) {
  if (site === 'decoder.cross') return { rows: 'target', cols: 'source' };
  const side = site === 'decoder.self' && hasTarget ? 'target' : 'source';
  return { rows: side, cols: side };
}

/** The sides of the shown site's rows and columns. */
export const shownSides = (state) => sidesOf(siteOf(state)?.site, tokensOf(state, 'target').length > 0);

/** The tokens of the shown site's rows and columns: {rows, cols}. */
export function axesOf(state) {
  const { rows, cols } = shownSides(state);
  return { rows: tokensOf(state, rows), cols: tokensOf(state, cols) };
}

/** Whether rows and columns of the shown site are different texts. */
export const isCross = (state) => shownSides(state).rows !== shownSides(state).cols;

/** Whether two heads, or nothing, are the same. */
export const sameHead = (one, other) => one?.layer === other?.layer && one?.head === other?.head;

/**
 * The head that goes with a layer: heads of one number in several layers have nothing in common, so over all layers it is all
 * heads. Their mean or maximum is taken first, that over the layers then.
 */
export const headBeside = (layer, head) => (Number.isInteger(layer) || !Number.isInteger(head) ? head : layer);

/** Layer and head on the screen: the previewed one, else the chosen one. Each is a number, 'mean' or 'max'. */
export function shownHead(state) {
  return state.preview ?? { layer: state.view.layer, head: state.view.head };
}

/** Whether the heat map shows the weights themselves, token by token. */
export const isPlain = ({ view }) => view.lens === 'raw' && view.unit === 'token';

/** What identifies the units that the heat map's rows and columns count. */
export function unitsKey(state) {
  const { rows, cols } = shownSides(state);
  return [state.run.id, state.view.unit, rows, cols].join('|');
}

/** What the heat map's rows and columns are, {rows, cols}: tokens or larger units; both empty while units are fetched. */
export function mapAxes(state) {
  if (state.view.unit === 'token') return axesOf(state);
  const { units } = state;
  return units.status === 'ready' && units.key === unitsKey(state) ? units : { rows: [], cols: [] };
}

/** How many rows and columns the heat map has. */
export function mapSize(state) {
  const site = siteOf(state);
  if (state.view.unit === 'token') return { rows: site?.query_len ?? 0, cols: site?.key_len ?? 0 };
  const { rows, cols } = mapAxes(state);
  return { rows: rows.length, cols: cols.length };
}

/** The tokens, half-open, that one row or column of the heat map stands for; `axis` is 'rows' or 'cols'. */
export function tokensAt(state, axis, index) {
  const unit = state.view.unit === 'token' ? null : mapAxes(state)[axis][index];
  return unit ? [unit.first, unit.stop] : [index, index + 1];
}

/** The row or column of the heat map that a token belongs to. */
export function placeOf(state, axis, token) {
  if (state.view.unit === 'token') return token;
  return mapAxes(state)[axis].findIndex(({ stop }) => token < stop);
}

/** The half-open ranges that the heat map should show. */
export function shownRange(state) {
  const size = mapSize(state);
  return { rows: state.view.rows ?? [0, size.rows], cols: state.view.cols ?? [0, size.cols] };
}

/** What identifies the shown head, its pooling, lens and unit, whatever part of it is shown. */
export function headKey(state) {
  const { layer, head } = shownHead(state);
  const { pool, lens, unit } = state.view;
  return [state.run.id, siteOf(state)?.site, layer, head, pool, lens, unit].join('|');
}

/** What identifies the heat map's picture: two equal keys are the same picture. */
export function mapKey(state) {
  const { rows, cols } = shownRange(state);
  return [headKey(state), rows.join(':'), cols.join(':')].join('|');
}

/** The token whose row or column is on the strips, {index, dir}: the hovered one, else the chosen one; null for none. */
export function shownToken(state) {
  const { token, dir } = state.view;
  return state.hoverToken ?? (token === null ? null : { index: token, dir });
}

/** What identifies the strip's colouring. */
export function lineKey(state) {
  const { layer, head } = shownHead(state);
  const { index, dir } = shownToken(state) ?? {};
  return [state.run.id, siteOf(state)?.site, layer, head, index, dir].join('|');
}

/** The mask of one layer in words; null where layers are mixed and differ. */
export function maskOf(site, layer) {
  if (!site) return null;
  if (Number.isInteger(layer)) return site.masks[layer] ?? null;
  const [first] = site.masks;
  return site.masks.every((mask) => mask.kind === first.kind && mask.window === first.window) ? first : null;
}

/** The model chosen for the next run; null while none is known. */
export function chosenModel(state) {
  return state.models.list.find((model) => model.id === state.modelId) ?? null;
}

/** Whether work is going on for the run that was asked for. */
export function isBusy(state) {
  return state.run.sending || state.run.phase === 'submitting' || state.run.phase === 'active';
}
