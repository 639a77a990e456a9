// Try other settings. One iteration of alternating normalization is computed here: for class j of a row,
// log w_j = log q_j + alpha log p_j - log(S_j + p_j^alpha), with the reference's column sums S.
// The outcome of several is in the page.
function liveModel(live) {
  const p = unpack(live.p);
  return {
    ...live,
    p,
    logP: Float64Array.from(p, Math.log),
    index: unpack(live.index),
    sumsOf: live.sums && unpack(live.sums),
    logQ: live.prior && unpack(live.prior),
    outcome: live.after && unpack(live.after),
    doubt: unpack(live.ambiguity),
    weight: unpack(live.weight),
    row: unpack(live.row),
    truth: unpack(live.truth),
    label: live.label ? unpack(live.label) : null,
  };
}

function logAdd(a, b) {
  const [high, low] = a > b ? [a, b] : [b, a];
  return low === -Infinity ? high : high + Math.log1p(Math.exp(low - high));
}

// Log-weights of the classes of row r at position a of the exponents; false if nothing can be said.
function adjust(m, r, a, t, out) {
  if (m.outcome) return recall(m, r, a, t, out);
  const alpha = m.alphas[a];
  const steps = m.sumsOf.length / (m.width * m.alphas.length);
  const base = ((steps > 1 ? t : 0) * m.alphas.length + a) * m.width;
  let known = false;
  let alive = false;
  for (let k = 0; k < m.top; k += 1) {
    const j = m.index[r * m.top + k];
    const power = alpha * m.logP[r * m.top + k];
    const s = m.sumsOf[base + j];
    out[k] = power === -Infinity ? -Infinity : m.logQ[j] + power - logAdd(s, power);
    known = known || s > -Infinity;
    alive = alive || out[k] > -Infinity;
  }
  return known && alive;
}

function recall(m, r, a, t, out) {
  const base = ((t * m.alphas.length + a) * m.n + r) * m.top;
  for (let k = 0; k < m.top; k += 1) out[k] = Math.log(m.outcome[base + k]);
  return true;
}

const argmax = (values, start, n) => {
  let best = 0;
  for (let k = 1; k < n; k += 1) if (values[start + k] > values[start + best]) best = k;
  return best;
};

// Counts that the sample stands for, and the score of the whole file: the share of right rows before is
// known, only its change is estimated.
function effect(m, a, t) {
  const out = new Float64Array(m.top);
  const found = { adjusted: 0, changed: 0, fixed: 0, broken: 0, right: 0, hits: 0, said: 0 };
  const old = { right: 0, hits: 0, said: 0, true: 0 };
  for (let r = 0; r < m.n; r += 1) {
    const start = r * m.top;
    const before = argmax(m.p, start, m.top);
    let after = before;
    if (m.doubt[r] > m.thresholds[t] && adjust(m, r, a, t, out)) {
      found.adjusted += m.weight[r];
      after = argmax(out, 0, m.top);
    }
    const truth = m.truth[r];
    const [was, is] = [m.index[start + before] === truth, m.index[start + after] === truth];
    const weight = m.weight[r];
    found.changed += weight * (before !== after);
    found.fixed += weight * (is && !was);
    found.broken += weight * (was && !is);
    found.right += weight * is;
    old.right += weight * was;
    if (m.label) {
      old.said += weight * before; found.said += weight * after;
      old.true += weight * (truth % 2);
      old.hits += weight * (before && was); found.hits += weight * (after && is);
    }
  }
  const score = (side) => (!m.outside ? null : m.label
    ? (2 * (m.outside.hits + side.hits)) / Math.max(1, m.outside.named + old.true + side.said)
    : (m.outside.right_in_all + side.right - old.right) / m.total);
  return { ...found, before: score(old), after: score(found) };
}

function setUpLive() {
  const m = liveModel(DATA.live);
  const [alpha, tau] = [$('#alpha'), $('#tau')];
  const state = { a: m.start[0], t: m.start[1], at: 0, cache: new Map() };
  const effects = (t) => {
    if (!state.cache.has(t)) state.cache.set(t, m.alphas.map((_, a) => effect(m, a, t)));
    return state.cache.get(t);
  };
  const order = Array.from({ length: m.n }, (_, r) => r).sort((a, b) => m.doubt[b] - m.doubt[a]);
  const redrawCurve = mount('live', (plot, width, figure) =>
    drawLive(plot, width, figure, m, state, effects(state.t)));
  const redrawRow = mount('one', (plot) => drawOne(plot, m, state, order, () => redrawRow()));
  const update = () => {
    [state.a, state.t] = [Number(alpha.value), Number(tau.value)];
    const [av, tv] = [m.alphas[state.a], m.thresholds[state.t]];
    $('#alpha-value').textContent = av;
    $('#tau-value').textContent = tv;
    alpha.setAttribute('aria-valuetext', String(av));
    tau.setAttribute('aria-valuetext', String(tv));
    liveNumbers(m, effect(m, state.a, state.t));
    redrawCurve();
    redrawRow();
  };
  let frame = 0;
  const soon = () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(update); };
  alpha.addEventListener('input', soon);
  tau.addEventListener('input', soon);
  $('#reset').addEventListener('click', () => { [alpha.value, tau.value] = m.start; update(); });
  update();
}

function liveScore(m) {
  if (!m.outside) return `share of ${ROWS[1]} that change`;
  return m.label ? 'micro-F1' : 'accuracy';
}

function liveNumbers(m, e) {
  const about = (v) => (m.n < m.of ? '≈ ' : '') + count(v);
  const cells = [[`${ROWS[1]} in doubt`, about(e.adjusted)], [`${ROWS[1]} changed`, about(e.changed)]];
  if (e.after !== null) {
    cells.unshift([liveScore(m), `${percent(e.before)} → ${percent(e.after)}`, 'score']);
    cells.push(['fixed', about(e.fixed), 'fixed'], ['broken', about(e.broken), 'broken']);
  }
  $('#live-numbers').replaceChildren(...cells.map(([name, value, kind]) =>
    html('div', { class: kind || null }, html('dt', {}, name), html('dd', {}, value))));
}

function drawLive(plot, width, figure, m, state, effects) {
  const labelled = Boolean(m.outside);
  const name = liveScore(m);
  const values = effects.map((e) => (labelled ? e.after : e.changed / m.total));
  const base = labelled ? effects[0].before : 0;
  const top = Math.max(...values, base);
  const bottom = Math.max(Math.min(...values, base), base - 1.5 * (top - base) - 0.05);
  const pad = (top - bottom || 0.1) * 0.1;
  const label = `${name} against the exponent at threshold ${m.thresholds[state.t]}.`;
  const area = canvas(width, 250, label, { top: 30, left: 50, bottom: 40 });
  const [first, last] = [m.alphas[0], m.alphas.at(-1)];
  const [x, y] = [log([first, last], area.x), linear([bottom - pad, top + pad], area.y)];
  const digits = top - bottom < 0.04 ? 1 : 0;
  axisY(area, y, ticks(bottom - pad, top + pad, 4), (v) => percent(v, digits), name);
  axisX(area, x, logTicks(first, last, 8), String, 'exponent α');
  const points = values.map((v, a) => [x(m.alphas[a]), y(v), a]);
  const [px, py] = [x(m.alphas[state.a]), clamp(y(values[state.a]), area.y[1], area.y[0])];
  clipped(area).append(curve('line-after', points));
  const here = dot('dot fill-after', px, py, 6);
  here.id = 'live-dot';
  area.node.append(stroke('line line-before thin dashed', area.x[0], y(base), area.x[1], y(base)),
    stroke('rule', px, area.y[1], px, area.y[0]), here);
  plot.append(area.node);
  hover(area, points.filter((p) => p[1] <= area.y[0]).map(([cx, cy, a]) => ({ x: cx, y: cy, lines: [
    `α ${m.alphas[a]}, τ ${m.thresholds[state.t]}`, `${name} ${percent(values[a])}`,
    `${count(effects[a].changed)} changed`] })), 30);
  const columns = ['α', name, 'changed', ...(labelled ? ['fixed', 'broken'] : [])];
  alternative(figure, columns, () => effects.map((e, a) =>
    [String(m.alphas[a]), percent(values[a]), ...[e.changed, e.fixed, e.broken].map(count)]
      .slice(0, columns.length)));
}

// The classes of a row with their probabilities before and after, the largest first.
function liveRow(m, r, state) {
  const out = new Float64Array(m.top);
  const doubtful = m.doubt[r] > m.thresholds[state.t] && adjust(m, r, state.a, state.t, out);
  const old = Array.from(m.p.subarray(r * m.top, (r + 1) * m.top));
  const high = Math.max(...out);
  const raw = doubtful ? Array.from(out, (v) => Math.exp(v - high)) : old;
  const scaled = sum(old) / sum(raw);
  const name = (j) => (m.label ? ['no', 'yes'][j % 2] : NAMES[j]);
  const entries = old.map((p, k) => {
    const j = m.index[r * m.top + k];
    return { name: name(j), old: p, now: raw[k] * scaled, truth: j === m.truth[r] };
  });
  const largest = (e) => Math.max(e.old, e.now);
  return { doubtful, entries: entries.sort((a, b) => largest(b) - largest(a)).slice(0, 6) };
}

function drawOne(plot, m, state, order, redraw) {
  if (!m.n) {
    plot.append(html('p', {}, `No ${ROWS[0]} is in doubt.`));
    return;
  }
  const r = order[state.at];
  const { doubtful, entries } = liveRow(m, r, state);
  const title = m.label ? `Row ${m.row[r]}, ${NAMES[m.label[r]]}` : `Row ${m.row[r]}`;
  const fate = doubtful ? 'adjusted' : 'left alone';
  const step = (by, text, sign) => html('button', {
    type: 'button',
    'aria-label': text,
    onclick: () => {
      state.at = (state.at + by + m.n) % m.n;
      redraw();
      $(`[aria-label="${text}"]`, plot).focus();
    },
  }, sign);
  plot.append(html('div', { class: 'walk' },
    html('span', {}, `${title}, ambiguity ${m.doubt[r].toFixed(2)}: ${fate}`),
    step(-1, 'Previous row', '←'), step(1, 'Next row', '→')));
  if (m.text && m.text[r]) plot.append(html('p', { class: 'quote' }, `“${m.text[r]}”`));
  const truth = m.outside ? [['✓ the truth', 'none']] : [];
  legend(plot, [['before', 'before'], ['after', 'after'], ...truth]);
  plot.append(bars(entries));
}

// Probabilities before and after as pairs of bars.
function bars(entries) {
  const most = Math.max(...entries.flatMap((e) => [e.old, e.now]));
  const bar = (value) => {
    const node = html('i');
    node.style.width = `${(100 * value) / most}%`;
    return node;
  };
  return html('div', { class: 'bars' }, entries.flatMap(({ name, old, now, truth }) => [
    html('span', { class: 'name', title: name },
      truth ? html('b', { title: 'the truth' }, '✓') : null, name),
    html('span', { class: 'track', 'aria-hidden': 'true' }, bar(old), bar(now)),
    html('span', { class: 'value' }, `${old.toFixed(2)} → ${now.toFixed(2)}`),
  ]));
}

if (DATA.live) setUpLive();
