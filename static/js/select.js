/** Questions about the state that several modules ask. Pure; knows nothing of the page. */

import { textOfTokens } from './text.js';

/** The finished run's summary, or null. */
export function finished(state) {
  return state.run.phase === 'done' ? state.run.summary : null;
}

/** Tokens of the run that is shown; empty while there is none. */
export function runTokens(state) {
  return state.run.summary?.tokens?.source ?? [];
}

/** The site that is shown, with its masks and steps; null before a run. */
export function siteOf(state) {
  const sites = state.run.summary?.sites ?? [];
  return sites.find((site) => site.site === state.view.site) ?? sites[0] ?? null;
}

/** Layer and head on the screen: the previewed one, else the chosen one. Each is a number, 'mean' or 'max'. */
export function shownHead(state) {
  return state.preview ?? { layer: state.view.layer, head: state.view.head };
}

/** The half-open ranges that the heat map should show. */
export function shownRange(state) {
  const site = siteOf(state);
  return {
    rows: state.view.rows ?? [0, site?.query_len ?? 0],
    cols: state.view.cols ?? [0, site?.key_len ?? 0],
  };
}

/** What identifies the shown head and its pooling, whatever part of it is shown. */
export function headKey(state) {
  const { layer, head } = shownHead(state);
  return [state.run.id, siteOf(state)?.site, layer, head, state.view.pool].join('|');
}

/** What identifies the heat map's picture: two equal keys are the same picture. */
export function mapKey(state) {
  const { rows, cols } = shownRange(state);
  return [headKey(state), rows.join(':'), cols.join(':')].join('|');
}

/** The token whose row or column is on the strip: the hovered one, else the chosen one; null for none. */
export function shownToken(state) {
  return state.hoverToken ?? state.view.token;
}

/** What identifies the strip's colouring. */
export function lineKey(state) {
  const { layer, head } = shownHead(state);
  return [state.run.id, siteOf(state)?.site, layer, head, shownToken(state), state.view.dir].join('|');
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

/** What of the form is no longer what the shown picture was made of: 'text', 'model', 'options'; null when all is. */
export function changedSince(state) {
  const summary = finished(state);
  if (!summary || state.modelId === null) return null;
  const known = state.run.text ?? (state.text ? textOfTokens(summary) : null);
  if (known !== null && known !== state.text) return 'text';
  if (summary.model.id !== state.modelId) return 'model';
  return summary.options.add_special_tokens === state.addSpecial ? null : 'options';
}

/** Whether work is going on for the run that was asked for. */
export function isBusy(state) {
  return state.run.sending || state.run.phase === 'submitting' || state.run.phase === 'active';
}
