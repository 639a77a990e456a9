// Elements, numbers, scales. Text from outside only ever becomes text nodes and attributes.
const DATA = JSON.parse(document.getElementById('data').textContent);
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const html = (tag, attributes, ...children) =>
  make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const minus = (text) => text.replace('-', '−');
const fixed = (value, digits) => minus(value.toFixed(digits));
const signed = (value, digits) => (value > 0 ? '+' : '') + fixed(value, digits);
const count = (value) => Math.round(value).toLocaleString('en');
const percent = (value, digits = 1) => `${fixed(100 * value, digits)}%`;
const share = (value) => percent(value, value < 0.001 ? 3 : value < 0.0995 ? 2 : 1);
// Beyond a thousand either way the digits of a factor say nothing.
const times = (value) => {
  if (value === null || value === undefined) return '–';
  if (value > 1000) return '×>1000';
  return value < 0.001 ? '×<0.001' : `×${Number(value.toPrecision(2))}`;
};
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

const ruler = document.createElement('canvas').getContext('2d');
function widthOf(text, size = 12) {
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}
// The text, cut so that it fits into a width.
function fit(text, width) {
  if (widthOf(text) <= width) return text;
  let cut = Math.max(1, Math.floor((text.length * width) / widthOf(text)));
  while (cut > 1 && widthOf(`${text.slice(0, cut)}…`) > width) cut -= 1;
  return `${text.slice(0, cut).trimEnd()}…`;
}

// Room for names beside a chart: a larger share of it on a phone.
const nameRoom = (width, most) => Math.min(most, width * (width < 480 ? 0.42 : 0.33));

// A scale maps numbers to pixels by way of a transform.
function scale(domain, range, transform = (v) => v) {
  const [low, high] = domain.map(transform);
  const span = high - low || 1;
  return (value) => range[0] + ((transform(value) - low) / span) * (range[1] - range[0]);
}
const linear = (domain, range) => scale(domain, range);
const log = (domain, range) => scale(domain, range, Math.log);
const root = (domain, range) => scale(domain, range, Math.sqrt);

function niceStep(span, n) {
  const rough = span / Math.max(1, n);
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  return unit * power;
}
function ticks(low, high, n = 5) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, n);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let i = first; i * step <= high + step * 1e-9; i += 1) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}
// Ticks for a square-root scale.
function rootTicks(most) {
  const wanted = [most / 100, most / 10, most / 3, most].map((v) => Number(v.toPrecision(1)));
  return [...new Set(wanted)].filter((v) => v >= 1 && v <= most);
}
function logTicks(low, high, n = 6) {
  if (high < 4 * low) return ticks(low, high, n);
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
    for (const unit of [1, 2, 5]) found.push(Number((unit * 10 ** e).toPrecision(3)));
  }
  const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  if (inside.length <= n) return inside;
  const decades = inside.filter((v) => Number.isInteger(Math.round(1e6 * Math.log10(v)) / 1e6));
  return decades.length >= 2 ? decades : inside.filter((_, i) => i % 2 === 0);
}

// Packed numbers: base64 of little-endian bytes.
const TYPES = { f4: Float32Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };
function unpack({ type, base64 }) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new TYPES[type](bytes.buffer);
}

function setUpTheme() {
  const button = $('#theme');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const now = () => document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light');
  const tell = () => {
    button.lastChild.textContent = now() === 'dark' ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Switch to the ${now() === 'dark' ? 'light' : 'dark'} theme`);
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = now() === 'dark' ? 'light' : 'dark';
    tell();
  });
  dark.addEventListener('change', tell);
  tell();
}

// The entry of the contents whose section is on screen is the current one.
function setUpContents() {
  const links = new Map($$('.contents a').map((a) => [a.hash.slice(1), a]));
  const seen = new Set();
  const observer = new IntersectionObserver((entries) => {
    entries.forEach((e) => (e.isIntersecting ? seen.add(e.target.id) : seen.delete(e.target.id)));
    const first = [...links.keys()].find((id) => seen.has(id));
    links.forEach((a, id) => {
      if (id === first) a.setAttribute('aria-current', 'true');
      else a.removeAttribute('aria-current');
    });
  }, { rootMargin: '-20% 0px -55% 0px' });
  $$('main > section').forEach((section) => observer.observe(section));
}

setUpTheme();
setUpContents();
