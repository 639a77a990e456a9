// One slider from accuracy to balanced accuracy, or over thresholds: what decisions would give.
const FEW = 12;

function purposeNumbers(at) {
  const { names, scores, before, changed } = DATA.purposes;
  const cells = names.map((name, i) => [name, percent(scores[i][at]),
    `${points(scores[i][at], before[i])} against ${percent(before[i])} before`]);
  const noun = DATA.multilabel ? 'label decisions' : 'rows';
  cells.push([`${noun} change`, count(changed[at]), 'against the predictions as they came']);
  return cells.map(([name, value, note]) => html('div', {},
    html('dt', {}, `${name}; ${note}`), html('dd', {}, value)));
}

// Both curves over all positions, with a mark where the slider stands.
function purposeCurves(at) {
  const { names, scores, positions } = DATA.purposes;
  const all = scores.flat();
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const pad = Math.max(0.005, (high - low) * 0.08);
  const x = (i) => 100 * (i / (positions.length - 1));
  const y = (v) => 60 - (60 * (v - low + pad)) / (high - low + 2 * pad);
  const kinds = ['after', 'other'];
  const curve = (values, k) => [
    svg('polyline', { class: kinds[k],
      points: values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(2)}`).join(' ') }),
    svg('circle', { class: kinds[k], cx: x(at), cy: y(values[at]), r: 1.8 })];
  const grid = [low, (low + high) / 2, high].flatMap((v) => [
    svg('line', { class: 'grid', x1: 0, x2: 100, y1: y(v), y2: y(v) }),
    svg('text', { x: -2, y: y(v) + 1.4, 'text-anchor': 'end' }, percent(v))]);
  const ends = DATA.multilabel ? [positions[0], positions.at(-1)].map((t) => t.toFixed(2)) : names;
  return [
    html('ul', { class: 'legend' }, names.map((name, k) =>
      html('li', {}, html('i', { class: kinds[k], 'aria-hidden': 'true' }), name))),
    svg('svg', { viewBox: '-17 -3 122 74', role: 'img', 'aria-label':
      `${names.join(' and ')} by position of the slider; now ${
        scores.map((s) => percent(s[at])).join(' and ')}` }, grid,
    svg('line', { class: 'axis', x1: x(at), x2: x(at), y1: 0, y2: 60 }), scores.flatMap(curve),
    svg('text', { x: 0, y: 68 }, ends[0]),
    svg('text', { x: 100, y: 68, 'text-anchor': 'end' }, ends[1]))];
}

// The classes that the choice matters to most, recognised before and where the slider stands.
function purposeRecall(at) {
  const { classes, n, recall, recall_before: before } = DATA.purposes;
  const shown = classes.slice(0, FEW).map((code, k) => ({ code, k }))
    .sort((a, b) => n[a.k] - n[b.k]);
  const lines = shown.map(({ code, k }) => bar(soft(NAMES[code]), [['other', before[k], 45],
    ['after', recall[at][k], 45, 55]], `${percent(recall[at][k], 0)} of ${count(n[k])}`));
  if (classes.length > FEW) {
    lines.push(html('p', { class: 'note' },
      `The ${FEW} of ${count(classes.length)} that the choice matters to most, rarest first.`));
  }
  return lines;
}

function setUpPurposes() {
  const slider = $('#purpose');
  const draw = () => {
    const at = Number(slider.value);
    if (DATA.multilabel) {
      slider.setAttribute('aria-valuetext', DATA.purposes.positions[at].toFixed(2));
    }
    $('#purpose-numbers').replaceChildren(...purposeNumbers(at));
    $('#purpose-curves').replaceChildren(...purposeCurves(at));
    $('#purpose-recall').replaceChildren(...purposeRecall(at));
  };
  slider.addEventListener('input', draw);
  draw();
}

if (DATA.purposes) setUpPurposes();
