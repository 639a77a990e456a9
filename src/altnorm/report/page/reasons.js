// Why: the distribution of ambiguity, what the reference uses up, and the factors.
const QUARTERS = [0, 0.25, 0.5, 0.75, 1];
const LOOKS_AT_DOUBT = DATA.kind !== 'other' && DATA.threshold !== null;

function bins() {
  const { edges, count: counts, right_before: before, right_after: after } = DATA.ambiguity;
  return counts.map((n, i) => ({
    low: edges[i], high: edges[i + 1], n, before: before && before[i], after: after && after[i],
  }));
}

function binLines(bin) {
  const range = `ambiguity ${bin.low.toFixed(2)} to ${bin.high.toFixed(2)}`;
  const lines = [range, plural(bin.n, ...ROWS)];
  if (bin.before !== null && bin.n) {
    const [before, after] = [bin.before, bin.after].map((v) => percent(v / bin.n));
    lines.push(`right: ${before} before, ${after} after`);
  }
  return lines;
}

function thresholdLine(area, at, named) {
  if (!LOOKS_AT_DOUBT) return;
  const x = at(DATA.threshold);
  const [dx, anchor] = DATA.threshold > 0.6 ? [-5, 'end'] : [5, 'start'];
  area.node.append(stroke('rule', x, area.y[1] - 8, x, area.y[0]));
  if (named) {
    area.node.append(write(`threshold τ = ${DATA.threshold}`, x + dx, area.y[1], 'strong', anchor));
  }
}

function doubtLegend() {
  if (DATA.kind === 'other') return [['all are adjusted', 'before']];
  if (DATA.kind !== 'identity') return [['sure: left alone', 'before'], ['in doubt: adjusted', 'after']];
  const would = LOOKS_AT_DOUBT ? [['would have been in doubt', 'after']] : [];
  return [['left alone', 'before'], ...would];
}

function drawAmbiguity(plot, width, figure) {
  const all = bins();
  const total = sum(all.map((b) => b.n));
  const most = Math.max(...all.map((b) => b.n), 1);
  const squeezed = most > (12 * total) / all.length;
  const label = `Histogram of the ambiguity of ${plural(total, ...ROWS)}.`;
  const area = canvas(width, 250, label, { top: 34, left: 50 });
  const x = linear([0, 1], area.x);
  const y = (squeezed ? root : linear)([0, most * 1.04], area.y);
  axisY(area, y, squeezed ? rootTicks(most) : ticks(0, most, 4), count,
    squeezed ? `${ROWS[1]}, square-root scale` : ROWS[1]);
  const marks = all.map((bin) => {
    const doubtful = LOOKS_AT_DOUBT && bin.low >= DATA.threshold - 1e-9;
    const [left, right, top] = [x(bin.low), x(bin.high), y(bin.n)];
    area.node.append(block(doubtful ? 'fill-after' : 'fill-before',
      left + 0.7, top, right - left - 1.4, area.y[0] - top));
    const box = [left, area.y[1], right, area.y[0]];
    return { x: (left + right) / 2, y: top, box, lines: binLines(bin) };
  });
  axisX(area, x, QUARTERS, String, 'ambiguity');
  thresholdLine(area, x, true);
  legend(plot, doubtLegend());
  plot.append(area.node);
  hover(area, marks, 8);
  const columns = ['ambiguity', ROWS[1], ...(DATA.labelled ? ['right before', 'right after'] : [])];
  alternative(figure, columns, () => all.map((b) =>
    [`${b.low.toFixed(3)}–${b.high.toFixed(3)}`, ...[b.n, b.before, b.after].map(count)]
      .slice(0, columns.length)));
}

// Bins joined until each band has enough rows for a share to mean something.
function bands(all) {
  const least = Math.max(20, sum(all.map((b) => b.n)) * 0.01);
  const joined = [];
  let open = null;
  all.forEach((bin, i) => {
    const last = i === all.length - 1;
    open = open ? { ...open, high: bin.high } : { ...bin, n: 0, before: 0, after: 0 };
    ['n', 'before', 'after'].forEach((key) => { open[key] += bin[key]; });
    if ((open.n >= least && (i + 1) % 4 === 0) || last) {
      if (open.n >= 5) joined.push(open);
      open = null;
    }
  });
  return joined;
}

function drawBands(plot, width, figure) {
  const all = bands(bins());
  const label = 'Share of right decisions by ambiguity, before and after.';
  const area = canvas(width, 250, label, { top: 34, left: 50 });
  const low = Math.min(...all.flatMap((b) => [b.before, b.after].map((v) => v / b.n))) > 0.55 ? 0.5 : 0;
  const [x, y] = [linear([0, 1], area.x), linear([low, 1], area.y)];
  const at = (b, side) => [x((b.low + b.high) / 2), y(b[side] / b.n)];
  axisY(area, y, ticks(low, 1, 4), (v) => percent(v, 0), `share of ${ROWS[1]} that are right`);
  axisX(area, x, QUARTERS, String, 'ambiguity');
  thresholdLine(area, x, false);
  const marks = ['before', 'after'].flatMap((side) => {
    area.node.append(curve(`line-${side}`, all.map((b) => at(b, side))),
      ...all.map((b) => dot(`dot fill-${side}`, ...at(b, side))));
    return all.map((b) => ({ x: at(b, side)[0], y: at(b, side)[1], lines: binLines(b) }));
  });
  legend(plot, [['before', 'before', 'line'], ['after', 'after', 'line']]);
  plot.append(area.node);
  hover(area, marks, 30);
  alternative(figure, ['ambiguity', ROWS[1], 'right before', 'right after'], () => all.map((b) =>
    [`${b.low.toFixed(2)}–${b.high.toFixed(2)}`, count(b.n),
      percent(b.before / b.n), percent(b.after / b.n)]));
}

// Classes by how far their use is from the prior: all if few, else both ends.
function useRows(limit) {
  const { prior, used } = DATA.use;
  const excess = (i) => used[i] - prior[i];
  const order = prior.map((_, i) => i).sort((a, b) => excess(b) - excess(a));
  return order.length <= limit ? order : [...order.slice(0, 8), ...order.slice(-8)];
}

function useLines(i) {
  const { classes, prior, used, factor } = DATA.use;
  const lines = [classes[i], `prior expects ${share(prior[i])}`, `reference uses ${share(used[i])}`];
  if (!factor || factor[i] === null) return lines;
  const to = DATA.multilabel ? '' : ' relative to the average class';
  return [...lines, `factor ${times(factor[i])}${to}`];
}

function useSummary(n) {
  const { classes, source, confident, n: rows } = DATA.use;
  const which = confident ? `${count(rows)} confident` : `all ${count(rows)}`;
  const all = `From ${source}: ${which} ${DATA.multilabel ? 'entries' : 'rows'}.`;
  if (n === classes.length) return all;
  return `${all} The ${n} furthest from the prior, of ${count(classes.length)}.`;
}

function drawUse(plot, width, figure) {
  const { classes, prior, used, factor } = DATA.use;
  const shown = useRows(20);
  const side = nameRoom(width, 150);
  const margin = { top: 22, left: side, right: factor ? 56 : 18, bottom: 40 };
  const label = 'Share that the prior expects and share that the reference uses, by class.';
  const area = canvas(width, shown.length * 24 + 62, label, margin);
  const top = Math.max(...shown.flatMap((i) => [prior[i], used[i]]));
  const x = linear([0, top * 1.04], area.x);
  const digits = top < 0.01 ? 2 : top < 0.04 ? 1 : 0;
  axisX(area, x, ticks(0, top, width < 420 ? 3 : 4), (v) => percent(v, digits), 'share');
  if (factor) area.node.append(write('factor', width, 12, null, 'end'));
  const marks = shown.map((i, r) => {
    const y = 34 + r * 24;
    const kind = used[i] > prior[i] ? 'broken' : 'fixed';
    const [a, b] = [x(prior[i]), x(used[i])];
    area.node.append(nameAt(classes[i], side - 12, side - 10, y + 4, 'strong', 'end'),
      stroke(`line line-${kind}`, a, y, b, y), stroke('line line-ink', a, y - 6, a, y + 6),
      dot(`dot fill-${kind}`, b, y, 5));
    if (factor) area.node.append(write(times(factor[i]), width, y + 4, null, 'end'));
    return { x: (a + b) / 2, y: y - 6, box: [0, y - 12, width, y + 12], lines: useLines(i) };
  });
  legend(plot, [['prior', 'ink', 'tick'], ['used more', 'broken'], ['used less', 'fixed']]);
  plot.append(area.node);
  hover(area, marks, 4);
  summarize(figure, useSummary(shown.length));
  alternative(figure, [NOUN[0], 'prior', 'used', 'factor'], () => useRows(Infinity).map((i) =>
    [classes[i], share(prior[i]), share(used[i]), factor ? times(factor[i]) : '–']));
}

// Ends of a logarithmic axis around 1 that hold the values, up to a hundred either way.
function around(values, least) {
  const most = Math.min(100, 1.1 * Math.max(least, ...values.map((v) => Math.max(v, 1 / v))));
  return [1 / most, most];
}

function drawFactors(plot, width, figure) {
  const { prior, used, factor } = DATA.use;
  const dots = factor.map((_, i) => i).filter((i) => factor[i] > 0 && prior[i] > 0 && used[i] > 0);
  const ratio = (i) => used[i] / prior[i];
  const label = `Factor of each of ${plural(dots.length, ...NOUN)} against its use.`;
  const area = canvas(width, clamp(width, 300, 430), label, { top: 34, left: 50, bottom: 40 });
  const [wide, tall] = [around(dots.map(ratio), 2), around(dots.map((i) => factor[i]), 1.5)];
  const [x, y] = [log(wide, area.x), log(tall, area.y)];
  axisY(area, y, logTicks(...tall), times, DATA.multilabel ? 'typical factor' : 'relative factor');
  axisX(area, x, logTicks(...wide, 5), times, 'used, relative to the prior');
  area.node.append(stroke('zero', x(1), area.y[0], x(1), area.y[1]),
    stroke('zero', area.x[0], y(1), area.x[1], y(1)),
    write('↑ raised', area.x[1], area.y[1] + 12, null, 'end'),
    write('↓ lowered', area.x[0] + 6, area.y[0] - 8));
  const size = dots.length > 300 ? 2.6 : 4;
  const marks = dots.map((i) => {
    const [cx, cy] = [x(clamp(ratio(i), ...wide)), y(clamp(factor[i], ...tall))];
    area.node.append(dot(`cloud fill-${factor[i] < 1 ? 'broken' : 'fixed'}`, cx, cy, size));
    return { x: cx, y: cy, lines: useLines(i) };
  });
  plot.append(area.node);
  hover(area, marks, 24);
  const to = DATA.multilabel ? '' : ', relative to the average class';
  const which = LOOKS_AT_DOUBT ? `doubtful ${ROWS[1]}` : ROWS[1];
  summarize(figure, `What ${which} were multiplied by${to}. One dot per ${NOUN[0]}.`);
}

mount('ambiguity', drawAmbiguity);
if (DATA.labelled) mount('bands', drawBands);
if (DATA.use) mount('use', drawUse);
if (DATA.use && DATA.use.factor) mount('factors', drawFactors);
