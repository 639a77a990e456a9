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
