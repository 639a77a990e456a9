// The table of changed rows: search, sort, filter, and a reason for each.
const PAGE = 20;

function changedRows() {
  const r = DATA.rows;
  const names = r.label ? ['no', 'yes'] : NAMES;
  return r.row.map((row, i) => {
    const cells = Array.from({ length: r.top }, (_, k) => i * r.top + k)
      .map((at) => ({ code: r.index[at], old: r.old[at], now: r.new[at] }));
    const [from, to] = [r.before[i], r.after[i]].map((code) => cells.find((c) => c.code === code));
    const truth = r.truth ? r.truth[i] : null;
    return {
      id: i, row, from, to, truth, cells, names,
      outcome: outcomeOf(truth, from.code, to.code),
      ambiguity: r.ambiguity[i],
      label: r.label ? NAMES[r.label[i]] : '',
      text: r.text ? r.text[i] : '',
      fromName: names[from.code],
      toName: names[to.code],
      truthName: truth === null ? '' : names[truth],
    };
  });
}

function outcomeOf(truth, before, after) {
  if (truth === null) return '';
  if (truth === after) return 'fixed';
  return truth === before ? 'broken' : 'still wrong';
}

// The sentence of altnorm's own explanation.
function reason(one) {
  const name = (text) => (one.label ? `${one.label}: ${text}` : text);
  const factor = (c) => (c.old > 0 ? c.now / c.old : 1).toFixed(2);
  return `Row ${one.row} was in doubt (ambiguity ${one.ambiguity.toFixed(2)}): ${
    name(one.fromName)} (${one.from.old.toFixed(2)} before) was multiplied by ${
    factor(one.from)}, ${name(one.toName)} by ${factor(one.to)}, so ${
    name(one.toName)} leads with ${one.to.now.toFixed(2)}.`;
}

const withChance = (name, p) => [name, ' ', html('small', {}, p.toFixed(2))];
const tag = (one) => html('span', { class: `tag ${one.outcome}` }, one.outcome);

function rowColumns() {
  const column = (name, key, cell = key, kind = null) => ({ name, key, cell, kind });
  const { text, label } = DATA.rows;
  return [
    column('Row', (o) => o.row, (o) => count(o.row), 'n'),
    text && column('Text', (o) => o.text, undefined, 'text'),
    label && column('Label', (o) => o.label, undefined, 'class'),
    column('Before', (o) => o.fromName, (o) => withChance(o.fromName, o.from.old), 'class'),
    column('After', (o) => o.toName, (o) => withChance(o.toName, o.to.now), 'class'),
    DATA.labelled && !label && column('Truth', (o) => o.truthName, undefined, 'class'),
    DATA.labelled && column('Outcome', (o) => o.outcome, tag),
    column('Ambiguity', (o) => o.ambiguity, (o) => o.ambiguity.toFixed(2), 'n'),
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
  const render = () => drawTable(columns, visible(all, state), state, render);
  const change = (values) => {
    Object.assign(state, values);
    render();
  };
  $('#search').addEventListener('input', (e) => change({ query: e.target.value, page: 0 }));
  $('#previous').addEventListener('click', () => change({ page: state.page - 1 }));
  $('#next').addEventListener('click', () => change({ page: state.page + 1 }));
  outcomeButtons(all, change);
  render();
}

function outcomeButtons(all, change) {
  const box = $('#outcome');
  if (!box) return;
  const kinds = ['', 'fixed', 'broken', 'still wrong']
    .filter((kind) => !kind || all.some((o) => o.outcome === kind));
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

function drawTable(columns, rows, state, render) {
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  state.page = clamp(state.page, 0, pages - 1);
  const focused = document.activeElement?.dataset;
  $('#table thead').replaceChildren(tableHead(columns, state, render));
  const part = rows.slice(state.page * PAGE, (state.page + 1) * PAGE);
  $('#table tbody').replaceChildren(...part.flatMap((one) => tableRow(columns, one, state, render)));
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

function tableHead(columns, state, render) {
  return html('tr', {}, columns.map((c) => {
    const order = state.down ? 'descending' : 'ascending';
    const press = () => {
      Object.assign(state, { down: state.by === c && !state.down, by: c, page: 0 });
      render();
    };
    return html('th', { scope: 'col', class: c.kind, 'aria-sort': state.by === c ? order : null },
      html('button', { type: 'button', 'data-sort': c.name, onclick: press }, c.name));
  }), html('th', { class: 'why' }));
}

function tableRow(columns, one, state, render) {
  const open = state.open.has(one);
  const button = html('button', {
    type: 'button',
    'aria-expanded': String(open),
    'aria-label': `Why did row ${one.row} change?`,
    'data-why': one.id,
    onclick: () => {
      if (!state.open.delete(one)) state.open.add(one);
      render();
    },
  }, open ? 'Close' : 'Why?');
  const cells = columns.map((c) =>
    html('td', { class: c.kind, 'data-label': c.name }, c.cell(one)));
  const line = html('tr', { class: open ? 'open' : null }, cells, html('td', { class: 'why' }, button));
  if (!open) return [line];
  const entries = one.cells.map((c) =>
    ({ name: one.names[c.code], old: c.old, now: c.now, truth: c.code === one.truth }));
  const detail = html('td', { colspan: columns.length + 1 }, html('p', {}, reason(one)), bars(entries));
  return [line, html('tr', { class: 'detail' }, detail)];
}

if (DATA.rows.n) setUpRows();
