(() => {
'use strict';

// Elements and numbers. Text from outside only ever becomes text nodes and attributes.
const DATA = JSON.parse(document.getElementById('data').textContent);
const NAMES = DATA.classes;
const $ = (selector) => document.querySelector(selector);

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const html = (tag, attributes, ...children) =>
  make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const count = (value) => value.toLocaleString('en');
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
// A name that may break after its parts.
const soft = (name) => name.split(/(?<=[_/.-])/).flatMap((part) => [part, html('wbr')]).slice(0, -1);

// A line of a chart of bars; each part is a kind, and a share of the width.
const bar = (name, parts, value) => html('div', {}, html('span', { class: 'name' }, name),
  svg('svg', { 'aria-hidden': 'true' }, parts.map(([kind, width, height = 100, y = 0]) => svg('rect',
    { class: kind, width: `${100 * width}%`, height: `${height}%`, y: `${y}%` }))),
  html('span', { class: 'value' }, value));

// The table of changed rows: search, sort, filter, and a reason for each.
const PAGE = 20;
const OUTCOMES = ['fixed', 'broken', 'still wrong', 'left to a person'];

function changedRows() {
  const r = DATA.rows;
  const names = r.label ? ['no', 'yes'] : NAMES;
  const person = NAMES.length - 1;
  return r.row.map((row, i) => {
    const cells = r.index[i].map((code, k) => ({ code, old: r.old[i][k], now: r.new[i][k] }));
    const [before, after, truth] = [r.before[i], r.after[i], r.truth ? r.truth[i] : null];
    const left = !r.label && after === person;
    return {
      id: i, row, cells, names, truth, reason: r.reason[i],
      from: cells.find((c) => c.code === before),
      to: left ? null : cells.find((c) => c.code === after),
      outcome: left ? OUTCOMES[3] : outcomeOf(truth, before, after),
      label: r.label ? NAMES[r.label[i]] : '',
      text: r.text ? r.text[i] : '',
      fromName: names[before],
      toName: left ? OUTCOMES[3] : names[after],
      truthName: truth === null ? '' : names[truth],
    };
  });
}

function outcomeOf(truth, before, after) {
  if (truth === null) return '';
  if (truth === after) return OUTCOMES[0];
  return truth === before ? OUTCOMES[1] : OUTCOMES[2];
}

const withChance = (name, p) => [...soft(name), ' ', html('small', {}, p.toFixed(2))];
const tag = (item) =>
  html('span', { class: `tag ${item.outcome.split(' ')[0]}` }, item.outcome);

function rowColumns() {
  const column = (name, key, cell = key, kind = null) => ({ name, key, cell, kind });
  const { text, label, truth } = DATA.rows;
  return [
    column('Row', (o) => o.row, (o) => count(o.row), 'n'),
    text && column('Text', (o) => o.text, undefined, 'text'),
    label && column('Label', (o) => o.label, (o) => soft(o.label), 'class'),
    column('Before', (o) => o.fromName, (o) => withChance(o.fromName, o.from.old), 'class'),
    column('After', (o) => o.toName,
      (o) => (o.to ? withChance(o.toName, o.to.now) : o.toName), 'class'),
    truth && !label && column('Truth', (o) => o.truthName, (o) => soft(o.truthName), 'class'),
    truth && column('Outcome', (o) => o.outcome, tag),
  ].filter(Boolean);
}

// The rows that search and filter leave, in order.
function visible(all, state) {
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  const hay = (o) => [o.row, o.label, o.fromName, o.toName, o.truthName, o.text].join(' ').toLowerCase();
  const kept = all.filter((o) => (!state.outcome || o.outcome === state.outcome)
    && words.every((word) => hay(o).includes(word)));
  if (!state.by) return kept;
  const sign = state.down ? -1 : 1;
  return kept.sort((a, b) => {
    const [x, y] = [state.by.key(a), state.by.key(b)];
    return sign * (typeof x === 'number' ? x - y : x.localeCompare(y));
  });
}

function setUpRows() {
  const all = changedRows();
  const columns = rowColumns();
  const state = { query: '', outcome: '', by: null, down: false, page: 0, open: new Set() };
  const change = (values) => {
    Object.assign(state, values);
    drawTable(columns, visible(all, state), state, change);
  };
  $('#search').addEventListener('input', (e) => change({ query: e.target.value, page: 0 }));
  $('#previous').addEventListener('click', () => change({ page: state.page - 1 }));
  $('#next').addEventListener('click', () => change({ page: state.page + 1 }));
  outcomeButtons(all, change);
  change({});
}

function outcomeButtons(all, change) {
  const box = $('#outcome');
  if (!box) return;
  const kinds = ['', ...OUTCOMES.filter((kind) => all.some((o) => o.outcome === kind))];
  const buttons = kinds.map((kind) => html('button', {
    type: 'button',
    'aria-pressed': String(kind === ''),
    onclick: () => {
      buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(kinds[i] === kind)));
      change({ outcome: kind, page: 0 });
    },
  }, kind || 'all'));
  box.append(...buttons);
}

function drawTable(columns, rows, state, change) {
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  state.page = clamp(state.page, 0, pages - 1);
  const focused = document.activeElement?.dataset;
  $('#table thead').replaceChildren(tableHead(columns, state, change));
  const part = rows.slice(state.page * PAGE, (state.page + 1) * PAGE);
  $('#table tbody').replaceChildren(...part.flatMap((item) => tableRow(columns, item, state, change)));
  const { n, of } = DATA.rows;
  const sampled = n < of ? ` A random ${count(n)} of ${count(of)} changes are listed.` : '';
  $('#found').textContent = `${plural(rows.length, 'change', 'changes')}.${sampled}`;
  $('#page').textContent = `Page ${state.page + 1} of ${pages}`;
  $('#previous').disabled = state.page === 0;
  $('#next').disabled = state.page === pages - 1;
  // What was pressed was drawn anew; it keeps the focus.
  if (focused?.sort) $(`[data-sort="${focused.sort}"]`)?.focus();
  if (focused?.why) $(`[data-why="${focused.why}"]`)?.focus();
}

function tableHead(columns, state, change) {
  return html('tr', {}, columns.map((c) => {
    const order = state.down ? 'descending' : 'ascending';
    const press = () => change({ down: state.by === c && !state.down, by: c, page: 0 });
    return html('th', { scope: 'col', class: c.kind, 'aria-sort': state.by === c ? order : null },
      html('button', { type: 'button', 'data-sort': c.name, onclick: press }, c.name));
  }), html('th', { class: 'why', scope: 'col' }, html('span', { class: 'unseen' }, 'Reason')));
}

function tableRow(columns, item, state, change) {
  const open = state.open.has(item);
  const button = html('button', {
    type: 'button',
    'aria-expanded': String(open),
    'aria-label': open ? `Close row ${item.row}` : `Why? Row ${item.row}`,
    'data-why': item.id,
    onclick: () => {
      if (!state.open.delete(item)) state.open.add(item);
      change({});
    },
  }, open ? 'Close' : 'Why?');
  const cells = columns.map((c) =>
    html('td', { class: c.kind, 'data-label': c.name }, c.cell(item)));
  const line = html('tr', { class: open ? 'open' : null }, cells, html('td', { class: 'why' }, button));
  if (!open) return [line];
  const bars = item.cells.map((c) => bar(
    [c.code === item.truth ? html('b', { title: 'the truth' }, '✓ ') : null, ...soft(item.names[c.code])].filter(Boolean),
    [['other', c.old, 45], ['after', c.now, 45, 55]], `${c.old.toFixed(2)} → ${c.now.toFixed(2)}`));
  const detail = html('td', { colspan: columns.length + 1 }, html('p', {}, item.reason),
    html('div', { class: 'bars' }, bars));
  return [line, html('tr', { class: 'detail' }, detail)];
}

if (DATA.rows.n) setUpRows();
})();
