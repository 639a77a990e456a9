// What changes: intervals of the scores, flow of rows between classes, fixed and broken by class.
const NAMES = DATA.classes;
const nameOf = (code) => (code < NAMES.length ? NAMES[code] : 'other classes');
const NOUN = DATA.multilabel ? ['label', 'labels'] : ['class', 'classes'];
const ROWS = DATA.multilabel ? ['decision', 'decisions'] : ['row', 'rows'];

$$('[data-interval]').forEach((cell) => {
  const [middle, low, high] = cell.dataset.interval.split(' ').map(Number);
  if (![middle, low, high].every(Number.isFinite)) return;
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const [width, height] = [150, 14];
  const at = linear([-most, most], [6, width - 6]);
  const kind = { better: 'fixed', worse: 'broken', unclear: 'before' }[cell.dataset.better];
  const frame = { width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' };
  cell.prepend(svg('svg', frame, stroke('axis', at(0), 0, at(0), height),
    stroke(`line line-${kind}`, at(low), height / 2, at(high), height / 2),
    dot(`fill-${kind}`, at(middle), height / 2)));
});

// Nodes of one side, from top to bottom, each tall enough for its name.
function stack(keys, amounts, height, pitch, gap) {
  const total = sum([...amounts.values()]);
  const room = height - gap * (keys.length - 1);
  let tall = keys.map((k) => Math.max(pitch, (room * amounts.get(k)) / total));
  const excess = sum(tall) - room;
  if (excess > 0) {
    const spare = tall.map((t) => t - pitch);
    const all = sum(spare) || 1;
    tall = tall.map((t, i) => t - (excess * spare[i]) / all);
  }
  let y = 0;
  return new Map(keys.map((k, i) => {
    const node = { y, height: tall[i], used: 0, per: tall[i] / amounts.get(k) };
    y += tall[i] + gap;
    return [k, node];
  }));
}

function groupSums(keys, amounts) {
  const found = new Map();
  keys.forEach((key, i) => found.set(key, (found.get(key) || 0) + amounts[i]));
  return found;
}

function largestFlows(n, all = DATA.flows) {
  const { source, target, count: amounts, fixed: right, broken } = all;
  return amounts.slice(0, n).map((amount, i) => ({
    from: source[i], to: target[i], amount,
    fixed: right ? right[i] : 0, broken: broken ? broken[i] : 0,
  }));
}

// Both sides: the left by size, the right near where its rows come from.
function sides(flows) {
  const amounts = flows.map((f) => f.amount);
  const out = groupSums(flows.map((f) => f.from), amounts);
  const into = groupSums(flows.map((f) => f.to), amounts);
  const rest = (k) => (k < NAMES.length ? 0 : 1);  // other classes come last
  const left = [...out.keys()].sort((a, b) => rest(a) - rest(b) || out.get(b) - out.get(a));
  const rank = new Map(left.map((k, i) => [k, i]));
  const pull = groupSums(flows.map((f) => f.to), flows.map((f) => f.amount * rank.get(f.from)));
  const centre = (k) => pull.get(k) / into.get(k);
  const right = [...into.keys()].sort((a, b) => rest(a) - rest(b) || centre(a) - centre(b));
  return { out, into, left, right, rank };
}

function drawFlows(plot, width, figure) {
  const all = DATA.flows;
  const flows = all.grouped ? largestFlows(Infinity, all.grouped) : largestFlows(18);
  const { out, into, left, right, rank } = sides(flows);
  const side = nameRoom(width, 170);
  const height = clamp(Math.max(left.length, right.length) * 26 + 10, 150, 560);
  const area = canvas(width, height, flowLabel(all), { top: 4, bottom: 4 });
  const from = stack(left, out, height - 8, 15, 6);
  const to = stack(right, into, height - 8, 15, 6);
  const [x0, x1] = [side, width - side];
  const marks = [...flows]
    .sort((a, b) => rank.get(a.from) - rank.get(b.from) || to.get(a.to).y - to.get(b.to).y)
    .map((flow) => ribbon(area, flow, from.get(flow.from), to.get(flow.to), x0, x1));
  nodes(area, from, out, x0 - 5, side - 14, 'end');
  nodes(area, to, into, x1, side - 14, 'start');
  if (all.fixed) {
    legend(plot, [['became right', 'fixed'], ['became wrong', 'broken'],
      ['wrong before and after', 'before']]);
  }
  plot.append(area.node);
  hover(area, marks, 14);
  if (all.grouped) {
    summarize(figure, `All ${count(all.rows)} rows, in ${count(all.n)} flows between classes. The classes that lose and gain most have names, the rest are together.`);
  }
  const columns = ['From', 'To', 'Rows', ...(all.fixed ? ['Fixed', 'Broken'] : [])];
  alternative(figure, columns, () => largestFlows(all.count.length).map((f) =>
    [NAMES[f.from], NAMES[f.to], ...[f.amount, f.fixed, f.broken].map(count)]
      .slice(0, columns.length)));
}

const flowLabel = (all) =>
  `Flow of ${plural(all.rows, 'row', 'rows')} between classes. The largest goes from ${
    NAMES[all.source[0]]} to ${NAMES[all.target[0]]}: ${plural(all.count[0], 'row', 'rows')}.`;

// One flow: a band for each of what became of its rows.
function ribbon(area, flow, a, b, x0, x1) {
  const group = svg('g', { class: 'flow' });
  const other = flow.amount - flow.fixed - flow.broken;
  const parts = DATA.flows.fixed
    ? [['fixed', flow.fixed], ['broken', flow.broken], ['other', other]]
    : [['after', flow.amount]];
  const mid = (x0 + x1) / 2;
  const first = a.y + a.used + b.y + b.used;
  parts.filter(([, amount]) => amount > 0).forEach(([kind, amount]) => {
    const [y0, y1] = [a.y + 4 + a.used, b.y + 4 + b.used];
    const [z0, z1] = [y0 + amount * a.per, y1 + amount * b.per];
    const d = `M${x0},${y0}C${mid},${y0} ${mid},${y1} ${x1},${y1}V${z1}`
      + `C${mid},${z1} ${mid},${z0} ${x0},${z0}Z`;
    group.append(svg('path', { class: `ribbon fill-${kind}`, d }));
    a.used += amount * a.per;
    b.used += amount * b.per;
  });
  area.node.append(group);
  const y = 4 + (first + a.y + a.used + b.y + b.used) / 4;
  const lines = [`${nameOf(flow.from)} → ${nameOf(flow.to)}`, plural(flow.amount, 'row', 'rows')];
  if (DATA.flows.fixed) lines.push(`${count(flow.fixed)} fixed, ${count(flow.broken)} broken`);
  return { x: mid, y, lines, node: group };
}

function nodes(area, placed, amounts, x, room, anchor) {
  placed.forEach((node, key) => {
    const amount = count(amounts.get(key));
    const label = fit(nameOf(key), room - widthOf(`${amount}  `));
    const y = node.y + 4 + node.height / 2 + 4;
    const words = anchor === 'end' ? `${label} ${amount}` : `${amount} ${label}`;
    const text = write(words, anchor === 'end' ? x - 7 : x + 12, y, null, anchor);
    text.prepend(svg('title', {}, nameOf(key)));
    area.node.append(block('fill-ink', x, node.y + 4, 5, node.height), text);
  });
}

// The classes that change most: all if few, else the best and the worst.
function movers(gain, loss, limit = 24) {
  const net = gain.map((g, i) => g - loss[i]);
  const order = gain.map((_, i) => i).filter((i) => gain[i] + loss[i] > 0)
    .sort((a, b) => net[b] - net[a] || gain[b] - gain[a]);
  if (order.length <= limit) return order;
  const worst = order.slice(-8).filter((i) => net[i] < 0);
  return [...order.slice(0, 18 - worst.length), ...worst];
}

// What the bars to the right and to the left count, in which colours.
function changeWords() {
  if (DATA.changes.fixed) return { right: 'fixed', left: 'broken', kinds: ['fixed', 'broken'] };
  const [right, left] = DATA.multilabel ? ['added', 'removed'] : ['gained', 'lost'];
  return { right, left, kinds: ['after', 'before'] };
}

function drawChanges(plot, width, figure) {
  const { right, left, kinds } = changeWords();
  const { changes } = DATA;
  const [gain, loss] = [changes.fixed || changes.gained, changes.broken || changes.lost];
  const shown = movers(gain, loss);
  const side = nameRoom(width, 180);
  const area = canvas(width, shown.length * 24 + 12,
    `${right} and ${left} ${ROWS[1]} for ${plural(shown.length, ...NOUN)}.`, { top: 4, bottom: 4 });
  const most = (values) => Math.max(1, ...shown.map((i) => values[i]));
  const unit = (width - side - 84) / (most(gain) + most(loss));
  const zero = side + 40 + most(loss) * unit;
  const marks = shown.map((i, r) => {
    const y = 4 + r * 24;
    const [a, b] = [zero - loss[i] * unit, zero + gain[i] * unit];
    area.node.append(nameAt(NAMES[i], side - 8, side - 4, y + 15, 'strong', 'end'),
      block(`fill-${kinds[1]}`, a, y + 3, zero - a, 16, 2),
      block(`fill-${kinds[0]}`, zero, y + 3, b - zero, 16, 2));
    if (loss[i]) area.node.append(write(count(loss[i]), a - 5, y + 15, kinds[1], 'end'));
    if (gain[i]) area.node.append(write(count(gain[i]), b + 5, y + 15, kinds[0]));
    return { x: zero, y: y + 6, box: [0, y, width, y + 24], lines: [NAMES[i],
      `${count(gain[i])} ${right}, ${count(loss[i])} ${left}`,
      `net ${signed(gain[i] - loss[i], 0)}`] };
  });
  area.node.append(stroke('zero', zero, 0, zero, area.height));
  legend(plot, [[left, kinds[1]], [right, kinds[0]]]);
  plot.append(area.node);
  hover(area, marks, 4);
  summarize(figure, changesSummary(gain, loss, shown.length, right, left));
  alternative(figure, [NOUN[0], right, left, 'net'], () => movers(gain, loss, Infinity).map((i) =>
    [NAMES[i], count(gain[i]), count(loss[i]), signed(gain[i] - loss[i], 0)]));
}

function changesSummary(gain, loss, n, right, left) {
  const net = gain.map((g, i) => g - loss[i]);
  const [up, down] = [net.filter((v) => v > 0).length, net.filter((v) => v < 0).length];
  const touched = gain.filter((g, i) => g + loss[i] > 0).length;
  const all = `Of ${plural(NAMES.length, ...NOUN)}, ${count(up)} have more ${ROWS[1]} ${
    right} than ${left}, ${count(down)} have fewer.`;
  return n < touched ? `${all} These ${n} change most; the table has all.` : all;
}

if (DATA.flows) mount('flows', drawFlows);
if (DATA.changes) mount('changes', drawChanges);
