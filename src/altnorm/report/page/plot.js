// What every chart shares: a canvas that follows its width, axes, a legend, marks that name
// themselves to pointer and keyboard, and a table with the same numbers.
const figureOf = (name) => $(`[data-chart="${name}"]`);

// Charts on paper are drawn for a width of their own, whatever screen they were printed from.
const paperWidth = (figure) =>
  (figure.parentNode.classList.contains('pair') && !figure.classList.contains('wide') ? 440 : 900);

// Draw into a figure now and whenever its width changes; returns a function that draws again.
function mount(name, draw) {
  const figure = figureOf(name);
  if (!figure) return () => {};
  const plot = $('.plot', figure);
  let width = 0;
  const render = (force, given) => {
    const now = given || Math.floor(plot.clientWidth);
    if (!now || (!force && now === width)) return;
    width = now;
    plot.replaceChildren();
    draw(plot, width, figure);
  };
  new ResizeObserver(() => render(false)).observe(plot);
  addEventListener('beforeprint', () => render(true, paperWidth(figure)));
  addEventListener('afterprint', () => render(true));
  render(true);
  return () => render(true);
}

function canvas(width, height, label, margin = {}) {
  const m = { top: 8, right: 18, bottom: 34, left: 44, ...margin };
  const node = svg('svg', {
    viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label,
  });
  return { node, m, width, height, x: [m.left, width - m.right], y: [height - m.bottom, m.top] };
}

// Marks. A class says what a mark means; style.css says how that looks.
const stroke = (kind, x1, y1, x2, y2) => svg('line', { class: kind, x1, y1, x2, y2 });
const dot = (kind, cx, cy, r = 4) => svg('circle', { class: kind, cx, cy, r });
const block = (kind, x, y, width, height, rx = 0) =>
  svg('rect', { class: kind, x, y, width: Math.max(0, width), height: Math.max(0, height), rx });
const path = (points) =>
  points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)},${y.toFixed(1)}`).join('');
const curve = (kind, points) => svg('path', { class: `line ${kind}`, d: path(points) });
const write = (content, x, y, kind = null, anchor = null) =>
  svg('text', { class: kind, x, y, 'text-anchor': anchor }, content);
// A name in one line or two, cut to fit, that tells itself in full.
function nameAt(name, room, x, y, kind, anchor) {
  const lines = inTwo(name, room).map((line) => fit(line, room));
  const spans = lines.length === 1 ? lines
    : lines.map((line, i) => svg('tspan', { x, y: y - 6 + 12 * i }, line));
  return svg('text', { class: kind, x, y, 'text-anchor': anchor }, svg('title', {}, name), ...spans);
}
// The name, or its two parts, cut after the last separator before which it fits.
function inTwo(name, room) {
  if (widthOf(name) <= room) return [name];
  const ends = [...name.matchAll(/[\s_/.,-]+/g)].map((found) => found.index + found[0].length);
  const end = ends.findLast((at) => at < name.length && widthOf(name.slice(0, at).trim()) <= room);
  return end ? [name.slice(0, end).trim(), name.slice(end)] : [name];
}

function axisX(area, at, values, format, label) {
  const y = area.y[0];
  area.node.append(stroke('axis', area.x[0], y, area.x[1], y),
    ...values.map((v) => write(format(v), at(v), y + 16, null, 'middle')));
  if (label) area.node.append(write(label, (area.x[0] + area.x[1]) / 2, y + 32, null, 'middle'));
}

function axisY(area, at, values, format, label) {
  values.forEach((v) => area.node.append(
    stroke('grid', area.x[0], at(v), area.x[1], at(v)),
    write(format(v), area.x[0] - 7, at(v) + 4, null, 'end')));
  if (label) area.node.append(write(label, area.x[0] - area.m.left, area.m.top - 10));
}

// Children of the group that this returns are cut off at the edges of the area.
let clips = 0;
function clipped(area) {
  clips += 1;
  const [x, y] = [area.x[0] - 8, area.y[1] - 8];
  const group = svg('g', { 'clip-path': `url(#clip${clips})` });
  area.node.append(svg('clipPath', { id: `clip${clips}` },
    svg('rect', { x, y, width: area.x[1] - x + 8, height: area.y[0] - y })), group);
  return group;
}

function legend(plot, entries) {
  plot.append(html('ul', { class: 'legend' }, entries.map(([name, kind, shape = '']) =>
    html('li', {}, html('i', { class: `${kind} ${shape}`, 'aria-hidden': 'true' }), name))));
}

const tip = $('#tip');
function showTip(lines, x, y) {
  tip.replaceChildren(html('b', {}, lines[0]), ...lines.slice(1).map((line) => html('div', {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const above = y - box.height - 14;
  tip.style.transform = `translate(${clamp(x - box.width / 2, 8, innerWidth - box.width - 8)}px, ${
    above > 8 ? above : y + 18}px)`;
}
const hideTip = () => { tip.hidden = true; };

// Distance of a point to a mark: to its box if it has one, else to its centre.
function distance(mark, x, y) {
  if (!mark.box) return Math.hypot(mark.x - x, mark.y - y);
  const [x0, y0, x1, y1] = mark.box;
  const outside = Math.hypot(Math.max(x0 - x, 0, x - x1), Math.max(y0 - y, 0, y - y1));
  return outside || Math.hypot(mark.x - x, mark.y - y) * 1e-3;
}

// The mark next to the pointer, or chosen with the arrow keys, tells its lines.
function hover(area, marks, reach = 36) {
  const { node } = area;
  if (!marks.length) return;
  const halo = svg('circle', { class: 'halo', r: 7, visibility: 'hidden' });
  node.append(halo);
  node.setAttribute('tabindex', '0');
  node.setAttribute('aria-roledescription', 'chart, arrow keys read its marks');
  marks.forEach((mark, i) => mark.node?.setAttribute('data-mark', i));
  let current = -1;
  const leave = () => {
    if (current >= 0 && marks[current].node) marks[current].node.classList.remove('on');
    current = -1;
    halo.setAttribute('visibility', 'hidden');
    hideTip();
  };
  const enter = (i) => {
    leave();
    current = i;
    const mark = marks[i];
    if (mark.node) mark.node.classList.add('on');
    if (!mark.node && !mark.box) {
      halo.setAttribute('cx', mark.x);
      halo.setAttribute('cy', mark.y);
      halo.setAttribute('visibility', 'visible');
    }
    const box = node.getBoundingClientRect();
    const zoom = box.width / area.width;
    showTip(mark.lines, box.left + mark.x * zoom, box.top + mark.y * zoom);
  };
  const point = (event) => {
    const box = node.getBoundingClientRect();
    const zoom = area.width / box.width;
    const [x, y] = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
    const own = event.target.closest('[data-mark]');
    let [best, near] = own ? [Number(own.dataset.mark), 0] : [-1, reach];
    marks.forEach((mark, i) => {
      const d = distance(mark, x, y);
      if (d < near) [best, near] = [i, d];
    });
    if (best < 0) leave();
    else if (best !== current) enter(best);
  };
  node.addEventListener('pointermove', point);
  node.addEventListener('pointerdown', point);
  node.addEventListener('pointerleave', leave);
  node.addEventListener('blur', leave);
  node.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') leave();
    if (!step) return;
    event.preventDefault();
    enter((current + step + marks.length) % marks.length);
  });
}

// The same numbers as a table, built when it is first opened.
function alternative(figure, columns, rows) {
  $('.alternative', figure)?.remove();
  const body = html('div', {
    class: 'scroll', tabindex: '0', role: 'region',
    'aria-label': `Numbers: ${$('h3', figure).textContent}`,
  });
  const summary = html('summary', {}, 'Show the numbers');
  const details = html('details', { class: 'alternative' }, summary, body);
  details.addEventListener('toggle', () => {
    if (details.open && !body.firstChild) body.append(numbers(columns, rows()));
  });
  figure.append(details);
}

function numbers(columns, rows) {
  const head = columns.map((name, i) =>
    html('th', { scope: 'col', class: i ? 'n' : null }, name));
  const cell = (text, i) =>
    (i ? html('td', { class: 'n' }, text) : html('th', { scope: 'row' }, text));
  return html('table', {}, html('thead', {}, html('tr', {}, head)),
    html('tbody', {}, rows.map((row) => html('tr', {}, row.map(cell)))));
}

const summarize = (figure, text) => { $('.summary', figure).textContent = text; };
