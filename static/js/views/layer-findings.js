/** What the layers' curves say, in words with their numbers. Says only what the service found. */

import { el } from '../dom.js';
import { fixedText, has, t, whole } from '../i18n.js';

const SHOWN = 3; // verdicts before the others are folded away

const percent = (share) => `${Math.round(100 * share)}`;

function layersText([first, last]) {
  return first === last ? t('finding.layer', { n: whole(first) }) : t('finding.layers', { first: whole(first), last: whole(last) });
}

/** A finding's numbers as a sentence wants them; those with a sink have their own names. */
function values({ layers, share, chance, sink, whole: all, ...rest }, near) {
  const numbers = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value === 'number').map(([name, value]) => [name, fixedText(value, 1)]));
  return {
    near: whole(near), ...numbers, layers: layers ? layersText(layers) : '',
    share: share === undefined ? '' : percent(share), chance: chance === undefined ? '' : percent(chance),
    sink: Number.isFinite(sink) ? percent(sink) : '', mean_all: all ? fixedText(all.mean, 1) : '', uniform_all: all ? fixedText(all.uniform, 1) : '', share_all: all ? percent(all.share) : '',
  };
}

/** Heads of a layer that do nearly the same, each pair with its distance; a press opens the first of them. */
function alikeItem(alike) {
  const pairs = alike.flatMap((some, layer) => some.map(([one, other, distance]) => ({ layer, one, other, distance })));
  if (!pairs.length) return null;
  const buttons = pairs.map(({ layer, one, other, distance }) =>
    el('button', { type: 'button', class: 'head-button', 'data-open': `${layer}.${one}`, 'data-key': `alike-${layer}.${one}.${other}` }, `${layer}·${one} ≈ ${layer}·${other} (${fixedText(distance, 3)})`));
  return el('li', { class: 'is-warning' }, t('warning.heads_alike'), el('span', { class: 'alike-buttons' }, buttons));
}

function sentence(kind, finding, near) {
  const key = `${kind}.${finding.code}`;
  if (!has(key)) return null;
  const given = values(finding, near);
  const beside = finding.whole && finding.code !== 'sink' ? t(`finding.beside_sink${finding.code === 'near' ? '_near' : ''}`, given) : null;
  return beside ? t('finding.joint', { said: t(key, given), more: beside }) : t(key, given);
}

function moreItem(texts) {
  if (!texts.length) return null;
  return el('li', { class: 'is-more' }, el('details', {}, el('summary', {}, t('finding.more', { n: whole(texts.length) })), texts.map((text) => el('p', {}, text))));
}

/** Verdicts and warnings as a list; null where there is nothing to say. */
export function findings(verdicts, warnings, alikeHeads, near) {
  const said = (kind, list) => list.map((one) => sentence(kind, one, near)).filter(Boolean);
  const told = said('verdict', verdicts);
  const more = told.length > SHOWN + 1 ? told.splice(SHOWN) : [];
  const items = [...said('warning', warnings).map((text) => ['warning', text]), ...told.map((text) => ['verdict', text])];
  const alike = alikeItem(alikeHeads);
  return items.length || alike ? el('ul', { class: 'findings' }, items.map(([kind, text]) => el('li', { class: `is-${kind}` }, text)), moreItem(more), alike) : null;
}
