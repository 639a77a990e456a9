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
  const move = (c) => `from ${c.old.toFixed(2)} to ${c.now.toFixed(2)}`;
  return `Row ${one.row} (ambiguity ${one.ambiguity.toFixed(2)}): ${name(one.fromName)} goes ${
    move(one.from)} and ${name(one.toName)} ${move(one.to)}, so ${name(one.toName)} leads.`;
}

// How often a class was predicted for each time that it occurs, if that is clearly not once.
function useOf(code) {
  const { predicted, occurs } = DATA.balance;
  const ratio = predicted[code] / Math.max(occurs[code], 1);
  const clear = Math.abs(predicted[code] - occurs[code]) > 2 * Math.sqrt(occurs[code] + 1);
  if (!clear || (ratio > 0.87 && ratio < 1.15)) return null;
  const often = ratio > 100 ? 'more than 100' : Number(ratio.toPrecision(2));
  return { over: ratio > 1, text: `${NAMES[code]} was predicted ${often} times as often as it occurs` };
}

// What about the two classes explains the change.
function cause(one) {
  if (!DATA.balance || one.label) return '';
  const [from, to] = [useOf(one.from.code), useOf(one.to.code)];
  const said = [from?.over ? from.text : '', to && !to.over ? to.text : ''].filter(Boolean);
  if (said.length) return `Among these rows ${said.join(', and ')}.`;
  return 'Among these rows both classes were predicted about as often as they occur: it is this '
    + 'row\u2019s probabilities that speak for the change, not the balance of the classes.';
}

// A name that may break after its parts.
const soft = (name) => name.split(/(?<=[_/.-])/).flatMap((part) => [part, html('wbr')]).slice(0, -1);
const withChance = (name, p) => [...soft(name), ' ', html('small', {}, p.toFixed(2))];
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
    DATA.labelled && !label && column('Truth', (o) => o.truthName, (o) => soft(o.truthName), 'class'),
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
  }), html('th', { class: 'why', scope: 'col' }, html('span', { class: 'unseen' }, 'Reason')));
}

function tableRow(columns, one, state, render) {
  const open = state.open.has(one);
  const button = html('button', {
    type: 'button',
    'aria-expanded': String(open),
    'aria-label': open ? `Close row ${one.row}` : `Why? Row ${one.row}`,
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
  const detail = html('td', { colspan: columns.length + 1 }, html('p', {}, reason(one)),
    html('p', { class: 'note' }, cause(one)), bars(entries));
  return [line, html('tr', { class: 'detail' }, detail)];
}

if (DATA.rows.n) setUpRows();
