// How sure: score against the exponent; the peers; the reliability diagram.
// Scores of which larger is better; that of a loss is its negative, and is told as a loss.
const scoreText = ({ points, loss }) => (value) =>
  (points ? percent(value) : fixed(loss ? -value : value, 4));
const gainText = ({ points, loss }) => (value) =>
  (points ? signed(100 * value, 1) : signed(loss ? -value : value, 4));
const depthKind = (depth) => `depth${Math.min(depth, 5)}`;
const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

// Scores that matter: what lies far below doing nothing is cut off.
function scoreDomain(tuning) {
  const all = tuning.curves.flatMap((c) => c.score);
  const top = Math.max(...all, tuning.base);
  const spread = Math.max(top - tuning.base, 1e-9);
  const low = Math.max(Math.min(...all, tuning.base), tuning.base - 1.2 * spread);
  const pad = (top - low || Math.abs(top) || 1) * 0.08;
  return [low - pad, top + pad];
}

function tuningSummary(tuning) {
  const { best, spread, points } = tuning;
  const within = points ? `${fixed(100 * spread, 2)} points` : fixed(spread, 4);
  return `Ringed: the best, α ${best.alpha}, depth ${best.depth}, τ ${best.threshold}, ${
    scoreText(tuning)(best.score)}. The ten best settings lie within ${within} of one another.`;
}

function drawTuning(plot, width, figure) {
  const { tuning } = DATA;
  const taus = distinct(tuning.curves.map((c) => c.threshold));
  const depths = distinct(tuning.curves.map((c) => c.depth));
  const across = width > 620 ? Math.min(3, taus.length) : 1;
  const grid = html('div', { class: 'panels' });
  grid.style.setProperty('--across', across);
  legend(plot, [...depths.map((d) => [`depth ${d}`, depthKind(d), 'line']),
    ['no adjustment', 'before', 'line']]);
  plot.append(grid);
  const each = Math.floor((width - (across - 1) * 22) / across);
  taus.forEach((tau) => grid.append(tuningPanel(tuning, tau, each)));
  summarize(figure, tuningSummary(tuning));
  const text = scoreText(tuning);
  alternative(figure, ['τ', 'depth', 'α', 'score'], () => tuning.curves.flatMap((c) =>
    c.alpha.map((a, i) => [String(c.threshold), String(c.depth), String(a), text(c.score[i])])));
}

function tuningPanel(tuning, tau, width) {
  const label = `Score against the exponent at threshold ${tau}.`;
  const area = canvas(width, 240, label, { top: 28, left: 48, bottom: 40 });
  const alphas = tuning.curves.flatMap((c) => c.alpha);
  const [low, high] = [Math.min(...alphas), Math.max(...alphas)];
  const domain = scoreDomain(tuning);
  const x = log([low * 0.93, Math.max(high, low * 1.2) * 1.07], area.x);
  const y = linear(domain, area.y);
  const digits = domain[1] - domain[0] < 0.04 ? 1 : 0;
  axisY(area, y, ticks(...domain, 5), (v) => (tuning.points ? percent(v, digits) : fixed(tuning.loss ? -v : v, 3)));
  axisX(area, x, logTicks(low, high, width < 260 ? 4 : 6), String, 'exponent α');
  area.node.append(write(`τ = ${tau}`, area.x[0], 14, 'strong'),
    stroke('line line-before thin dashed', area.x[0], y(tuning.base), area.x[1], y(tuning.base)));
  const marks = tuning.curves.filter((c) => c.threshold === tau)
    .flatMap((c) => tuningCurve(area, tuning, c, x, y));
  const { best } = tuning;
  if (best.threshold === tau) area.node.append(dot('chosen', x(best.alpha), y(best.score), 8));
  hover(area, marks, 24);
  return area.node;
}

function tuningCurve(area, tuning, c, x, y) {
  const points = c.alpha.map((a, i) => [x(a), y(c.score[i]), a, c.score[i]]);
  const unit = tuning.points ? ' points' : '';
  clipped(area).append(curve(depthKind(c.depth), points));
  return points.filter((p) => p[1] <= area.y[0]).map(([px, py, a, score]) => {
    area.node.append(dot(`dot fill-${depthKind(c.depth)}`, px, py, 3));
    return { x: px, y: py, lines: [`α ${a}, depth ${c.depth}, τ ${c.threshold}`,
      `${scoreText(tuning)(score)} cross-fitted`,
      `${gainText(tuning)(score - tuning.base)}${unit} over no adjustment`] };
  });
}

function peerLines(r) {
  return [r.method, `${r.figures.after}, ${r.figures.change_and_unit}`,
    `95% interval ${r.figures.low} to ${r.figures.high}, ${r.figures.p_value}`,
    `${count(r.n_fixed)} fixed, ${count(r.n_broken)} broken`];
}

function drawPeers(plot, width, figure) {
  const { rows, points, name } = DATA.peers;
  const unit = points ? 100 : 1;
  const side = nameRoom(width, 170);
  const values = rows.flatMap((r) => [r.ci_low, r.ci_high, r.gain, 0]).map((v) => v * unit);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = (high - low || 1) * 0.05;
  const margin = { top: 22, left: side, right: width < 480 ? 52 : 66, bottom: 40 };
  const label = `Gain of ${rows.length} methods with 95% intervals.`;
  const area = canvas(width, rows.length * 32 + 62, label, margin);
  const x = linear([low - pad, high + pad], area.x);
  const steps = ticks(low - pad, high + pad, width < 480 ? 4 : 7);
  const digits = !points ? 3 : steps[1] - steps[0] >= 1 ? 0 : 1;
  axisX(area, x, steps, (v) => signed(v, digits), points ? 'points gained' : 'gain');
  area.node.append(write(name, width, 12, null, 'end'),
    stroke('zero', x(0), 18, x(0), area.y[0]));
  const marks = rows.map((r, i) => peer(area, r, x, unit, 36 + i * 32, side));
  plot.append(area.node);
  hover(area, marks, 4);
  alternative(figure, ['Method', name, 'change', 'low', 'high', 'p-value', 'fixed', 'broken'], () =>
    rows.map((r) => [r.method, r.figures.after, r.figures.change, r.figures.low, r.figures.high,
      r.figures.p_value.replace(/^p (= )?/, ''), count(r.n_fixed), count(r.n_broken)]));
}

function peer(area, r, x, unit, y, side) {
  const own = /\bCAN\b|altnorm/.test(r.method);
  const [kind, words] = own ? ['after', 'after'] : ['before', 'strong'];
  area.node.append(nameAt(r.method, side - 14, side - 12, y + 4, words, 'end'),
    stroke(`line line-${kind}`, x(r.ci_low * unit), y, x(r.ci_high * unit), y),
    dot(`dot fill-${kind}`, x(r.gain * unit), y, 5.5),
    write(r.figures.after, area.width, y + 4, words, 'end'));
  const box = [0, y - 15, area.width, y + 15];
  return { x: x(r.gain * unit), y: y - 6, box, lines: peerLines(r) };
}

const CONFIDENCE = DATA.multilabel ? 'predicted probability' : 'confidence';
const whole = (value) => percent(value, 0);

function drawReliability(plot, width, figure) {
  const { before, decided, after } = DATA.reliability;
  const stages = [['before', before, 'before'],
    ...(decided ? [['decisions adjusted', decided, 'depth3']] : []),
    [decided ? 'and calibrated' : 'after', after, 'after']];
  const size = Math.min(width, 460);
  const label = 'Confidence against the share that is right, before and after.';
  const area = canvas(size, size * 0.86, label, { top: 30, left: 50, bottom: 40 });
  const [x, y] = [linear([0, 1], area.x), linear([0, 1], area.y)];
  axisY(area, y, QUARTERS, whole, 'share that is right');
  axisX(area, x, QUARTERS, whole, CONFIDENCE);
  area.node.append(stroke('diagonal', x(0), y(0), x(1), y(1)));
  const marks = stages.flatMap(([side, r, kind]) => {
    const points = r.confidence.map((c, i) => [x(c), y(r.right[i])]);
    area.node.append(curve(`line-${kind}`, points),
      ...points.map((p) => dot(`dot fill-${kind}`, ...p)));
    return points.map(([px, py], i) => ({ x: px, y: py, lines: [side,
      `mean ${CONFIDENCE} ${percent(r.confidence[i])}`, `right ${percent(r.right[i])}`,
      plural(r.count[i], 'prediction', 'predictions')] }));
  });
  legend(plot, stages.map(([side, , kind]) => [side, kind, 'line']));
  area.node.style.maxWidth = `${size}px`;
  plot.append(area.node);
  hover(area, marks, 24);
  summarize(figure, `Mean distance from the diagonal (expected calibration error): ${
    stages.map(([side, r]) => `${percent(r.error)} ${side}`).join(', ')}. Each dot stands for equally many predictions.`);
  alternative(figure, ['stage', CONFIDENCE, 'right', 'predictions'], () =>
    stages.flatMap(([side, r]) => r.confidence.map((c, i) =>
      [side, percent(c), percent(r.right[i]), count(r.count[i])])));
}

function drawConfidence(plot, width, figure) {
  const [before, after] = [DATA.reliability.before.histogram, DATA.reliability.after.histogram];
  const most = Math.max(...before, ...after);
  const squeezed = most > (6 * sum(before)) / before.length;
  const height = Math.min(width, 460) * 0.86;
  const label = 'Predictions by confidence, before and after.';
  const area = canvas(width, height, label, { top: 30, left: 54, bottom: 40 });
  const x = linear([0, before.length], area.x);
  const y = (squeezed ? root : linear)([0, most * 1.04], area.y);
  axisY(area, y, squeezed ? rootTicks(most) : ticks(0, most, 4), count,
    squeezed ? 'predictions, square-root scale' : 'predictions');
  axisX(area, x, QUARTERS.map((v) => v * before.length), (v) => whole(v / before.length), CONFIDENCE);
  const range = (i) => [i, i + 1].map((v) => whole(v / before.length)).join(' to ');
  const marks = before.map((n, i) => {
    const [left, right] = [x(i), x(i + 1)];
    const half = (right - left) / 2;
    [['fill-before', n], ['fill-after', after[i]]].forEach(([kind, value], k) => area.node.append(
      block(kind, left + 0.8 + k * half, y(value), half - 0.8, area.y[0] - y(value))));
    const box = [left, area.y[1], right, area.y[0]];
    return { x: (left + right) / 2, y: y(Math.max(n, after[i])), box,
      lines: [range(i), `${count(n)} before`, `${count(after[i])} after`] };
  });
  legend(plot, [['before', 'before'], ['after', 'after']]);
  plot.append(area.node);
  hover(area, marks, 8);
  alternative(figure, [CONFIDENCE, 'before', 'after'], () =>
    before.map((n, i) => [range(i), count(n), count(after[i])]));
}

if (DATA.tuning) mount('tuning', drawTuning);
if (DATA.peers) mount('peers', drawPeers);
if (DATA.reliability) mount('reliability', drawReliability);
if (DATA.reliability) mount('confidence', drawConfidence);
