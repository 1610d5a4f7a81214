/**
 * All heads as a table. Only the rows on the screen exist, and of them the cells as far as one has scrolled to the right, so
 * that a thousand heads sort as fast as ten.
 * Listens to finder, heads, pairs, run, view, preview; emits sort, preview, head, show-head, retry-figures.
 */

import { arrange, el, fill, perFrame, ref } from '../dom.js';
import { missingReason, sortedBy, surveyOf, versionFor } from '../finder.js';
import { t } from '../i18n.js';
import { finished, sameHead, shownHead } from '../select.js';
import { COLUMNS } from '../table-columns.js';
import { roleName, scoreName } from './finder-bar.js';
import { pointingAt } from './pointing.js';
import { madeBy, roleSource, sinkTags } from './role-parts.js';
import { figuresFailed } from './retry.js';
import { showHidden } from './sideways.js';

const ROW = 26; // px, as the style sheet has it
const FIXED = 6; // columns that every row has
const SPARE = 4; // rows above and below the screen

function headCell(column, { finder }) {
  const { column: sorted, score } = column.sort;
  const active = score ? score === finder.score && ['corrected', 'value'].includes(finder.column) : sortedBy(finder) === sorted;
  const direction = active ? (finder.down ? 'descending' : 'ascending') : null;
  const button = el('button', { type: 'button', 'data-column': column.id }, t(column.label),
    el('span', { class: 'sort-sign', 'aria-hidden': 'true' }, active ? (finder.down ? '▾' : '▴') : ''));
  const hint = column.score ? t('table.figure_of', { score: scoreName(column.score) })
    : column.number ? t(`table.${column.id}_of`, { score: scoreName(finder.score) }) : null;
  return el('th', { scope: 'col', class: classOf(column), 'aria-sort': direction, title: hint }, button);
}

const classOf = ({ id, number, score }) => `${number ? 'number' : `is-${id}`}${score ? ' is-other' : ''}${id === 'corrected' ? ' is-wide' : ''}`;

function placeCell({ layer, head }) {
  return el('th', { scope: 'row', class: 'is-place' }, el('button', { type: 'button', tabindex: -1, 'aria-label': t('finder.open', { layer, head }) }, `${layer}·${head}`));
}

/** Whether other columns of the row are of other weights than those that its role was read from. */
const isApart = ({ best, of }, { version }) => best && of !== version;

/** By the clearest role every row shows the score behind it: where the head is none of those, it is named. */
const nearest = ({ best, strong }, score) => (score === 'best' && best && !strong ? el('span', { class: 'quiet' }, ` · ${scoreName(best)}`) : null);

function roleCell(entry, role, finder) {
  const sinks = sinkTags(entry);
  const name = role.name === 'sink' && sinks.length ? null : roleName(role.name);
  const source = isApart(role, finder) ? roleSource(entry, role) : null;
  return el('td', { class: 'is-role' }, name, madeBy(role, finder.score), nearest(role, finder.score), source, sinks.length && name ? ' ' : null, sinks);
}

/** A row with its cells as far as one has scrolled to the right; a row that is there gets what it lacks of them. */
function row(state, survey, rank, columns, kept) {
  const at = survey.order[rank];
  const entry = survey.list[at];
  const { finder } = state;
  const tr = kept ?? el('tr', { 'data-at': at, 'aria-rowindex': rank + 2 }, placeCell(entry), roleCell(entry, survey.roles[at], finder));
  const given = { entry, figure: survey.figures[at], name: finder.score, version: versionFor(finder) };
  tr.append(...COLUMNS.slice(tr.cells.length, columns).map((column) => {
    const text = column.text(given);
    const lacks = column.score || (['corrected', 'value'].includes(column.id) && !given.figure);
    const reason = text === null && lacks ? t(missingReason(state, column.score ?? finder.score)) : null;
    return el('td', { class: classOf(column), title: reason }, text ?? (reason ? '–' : ''));
  }));
  return tr;
}

const space = (rows) => (rows > 0 ? el('tr', { class: 'table-space', 'aria-hidden': 'true' }, heightOf(el('td', { colspan: COLUMNS.length }), rows * ROW)) : null);

function heightOf(cell, pixels) {
  cell.style.height = `${pixels}px`;
  return cell;
}

function emptyRow(state, store) {
  const { status } = state.heads;
  const words = status === 'error' ? figuresFailed(store) : t(status === 'ready' ? 'finder.none' : 'finder.loading');
  return el('tr', {}, el('td', { colspan: COLUMNS.length, class: 'table-empty' }, words));
}

/** Mounts the table. */
export function mountTable(root, store) {
  const [box, head, body] = ['table-box', 'table-head', 'table-body'].map((name) => ref(root, name));
  const shown = { survey: null, from: 0, to: 0 };
  const pointing = pointingAt(store);
  let vacant = { of: null, row: null }; // what stands in the place of rows: its button stays in its place as they do
  let cut = { left: -1, right: -1 }; // the columns of numbers that are seen in part
  let seen = { top: 0, room: 600, columns: FIXED + 1 }; // what of the rows is on the screen, measured when nothing waits to be laid out
  const visible = () => finished(store.state) !== null && store.state.finder.tab === 'table';

  function range(count) {
    const first = Math.floor(seen.top / ROW) - SPARE;
    const from = Math.max(0, Math.min(first, count));
    return [from, Math.min(count, Math.max(0, first) + Math.ceil(seen.room / ROW) + 2 * SPARE)];
  }

  const measure = () => {
    const edge = box.scrollLeft + box.clientWidth;
    showHidden(box);
    const cells = [...head.querySelectorAll('th')];
    const columns = cells.filter((cell, at) => at < FIXED || cell.offsetLeft < edge).length;
    const covered = box.scrollLeft + (cells[0]?.offsetWidth ?? 0); // by the column that stays
    const across = (x) => cells.findIndex(({ classList, offsetLeft: left, offsetWidth: width }) =>
      classList.contains('number') && left < x - 1 && left + width > x + 1); // widths are rounded
    cut = { left: across(covered), right: across(edge) };
    hideCut();
    seen = { top: box.scrollTop, room: box.clientHeight || seen.room, columns: columns || seen.columns };
  };

  /** No number is shown in part: without its sign or its last digit it would be another. A name may end at the right edge. */
  function hideCut() {
    const hide = (rows, ...columns) => {
      for (const { cells } of rows) [...cells].forEach((cell, at) => cell.classList.toggle('is-cut', columns.includes(at)));
    };
    hide(head.rows, cut.left);
    hide(body.rows, cut.left, cut.right);
  }

  function draw() {
    if (!visible()) return;
    const { state } = store;
    const survey = surveyOf(state);
    const [from, to] = range(survey.order.length);
    const kept = new Map([...(survey === shown.survey ? body.querySelectorAll('[data-at]') : [])].map((tr) => [tr.dataset.at, tr]));
    Object.assign(shown, { survey, from, to, columns: seen.columns });
    const rows = Array.from({ length: to - from }, (_, at) =>
      row(state, survey, from + at, seen.columns, kept.get(String(survey.order[from + at]))));
    if (vacant.of !== state.heads) vacant = { of: state.heads, row: emptyRow(state, store) };
    arrange(body, [space(from), ...(rows.length ? rows : [vacant.row]), space(survey.order.length - to)].filter(Boolean));
    ref(root, 'table').setAttribute('aria-rowcount', survey.order.length + 1);
    hideCut();
    mark(state);
  }

  function drawHead(state) {
    const focused = head.contains(root.activeElement) ? root.activeElement.dataset.column : null;
    fill(head, el('tr', { 'aria-rowindex': 1 }, COLUMNS.map((column) => headCell(column, state))));
    hideCut();
    if (focused) head.querySelector(`[data-column="${focused}"]`)?.focus();
  }

  function mark({ view, preview }) {
    for (const tr of body.querySelectorAll('[data-at]')) {
      const { layer, head: number } = shown.survey.list[tr.dataset.at];
      const is = (one) => sameHead(one, { layer, head: number });
      if (is(view)) tr.setAttribute('aria-current', 'true');
      else tr.removeAttribute('aria-current');
      tr.classList.toggle('is-preview', is(preview));
    }
  }

  /** The row that the keys walked to, or that was opened elsewhere, comes into the picture; what is pointed at is there. */
  function follow(state, before) {
    mark(state);
    const { layer, head: number } = shownHead(state);
    if (pointing.isNow() || !visible() || !shown.survey || (before.view && sameHead(shownHead(before), shownHead(state)))) return;
    const { list, order } = shown.survey;
    const rank = order.findIndex((at) => list[at].layer === layer && list[at].head === number);
    if (rank < 0) return;
    const [top, room] = [rank * ROW, box.clientHeight - head.offsetHeight];
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + room) box.scrollTop = top + ROW - room;
  }

  const entryAt = ({ target }) => shown.survey?.list[target.closest?.('[data-at]')?.dataset.at] ?? null;
  head.addEventListener('click', ({ target }) => {
    const id = target.closest('[data-column]')?.dataset.column;
    if (id) store.emit('sort', COLUMNS.find((column) => column.id === id).sort);
  });
  body.addEventListener('pointermove', (event) => event.pointerType !== 'touch' && pointing.preview(entryAt(event)));
  body.addEventListener('pointerleave', () => pointing.preview(null));
  body.addEventListener('click', (event) => {
    const entry = entryAt(event);
    if (!entry) return;
    store.emit('head', { layer: entry.layer, head: entry.head });
    store.emit('show-head');
  });
  const again = perFrame(draw);
  box.addEventListener('scroll', perFrame(() => {
    measure();
    const [from, to] = range(shown.survey?.order.length ?? 0);
    if (from !== shown.from || to !== shown.to || seen.columns !== shown.columns) draw();
  }));
  store.subscribe(['finder'], drawHead);
  store.subscribe(['finder', 'heads', 'pairs', 'run'], (state, before) => {
    const turned = ['column', 'down', 'score', 'role'].some((name) => before.finder?.[name] !== state.finder[name]);
    if (turned && seen.top > 0) {
      box.scrollTop = 0;
      seen = { ...seen, top: 0 };
    }
    again();
  });
  store.subscribe(['view', 'preview'], follow);
  new ResizeObserver(() => {
    measure();
    again();
  }).observe(box);
}
