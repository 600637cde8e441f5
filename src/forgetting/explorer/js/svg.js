// SVG by hand, in the look of the figures of the package.

export const SVG = "http://www.w3.org/2000/svg";

/** An element of SVG with attributes, and with text or other elements in it. */
export function draw(tag, attributes = {}, ...inner) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...inner);
  return made;
}

const COLOURS = 7;
export const colour = (place) => `var(--c${place % COLOURS})`;
const FAR = 1e6;  // pixels: nobody sees what is beyond, and SVG has no numbers above 1e38
export const round = (value) => Math.round(Math.min(Math.max(value, -FAR), FAR) * 100) / 100;

/** A number for a reader. */
export function said(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "not defined";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size < 1e-3 || size >= 1e5 ? Number(value.toPrecision(digits)).toExponential().replace("e-", "e\u2212").replace("e+", "e").replace(/^-/, "\u2212") : Number(value.toPrecision(digits)).toString().replace(/^-/, "\u2212");
}

const SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
export const power = (exponent) => exponent >= -2 && exponent <= 3 ? String(Number(`1e${exponent}`)) : `10${exponent < 0 ? "\u207b" : ""}${[...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[digit]).join("")}`;

/** Begins a figure: its width on the page, and an empty drawing. */
export function canvas(svg, ratio, least = 240) {
  svg.knownWidth ??= Math.max(Math.round(svg.clientWidth || svg.parentElement.clientWidth) || 320, 200);  // reading it takes a layout
  const width = svg.knownWidth, height = Math.max(Math.round(width * ratio), least);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  return {width, height, parts: []};
}

/** Places on a scale of logarithms, and those of its ticks. */
export function logScale(low, high, from, to) {
  const [a, b] = [Math.log10(low), Math.log10(high)], place = (value) => from + (Math.log10(value) - a) / (b - a) * (to - from);
  const decades = Math.floor(b + 1e-9) - Math.ceil(a - 1e-9), every = Math.max(1, Math.ceil((decades + 1) / 7)), ticks = [], lines = [];
  for (let exponent = Math.ceil(a - 1e-9); exponent <= b + 1e-9; exponent++) {
    lines.push(10 ** exponent);
    if (exponent % every === 0) ticks.push([10 ** exponent, power(exponent)]);
  }
  if (decades < 2) for (let exponent = Math.floor(a); exponent <= b; exponent++) for (const digit of [2, 5]) {
    const value = digit * 10 ** exponent;
    if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) { ticks.push([value, said(value)]); lines.push(value); }
  }
  return {place, ticks, lines, back: (at) => 10 ** (a + (at - from) / (to - from) * (b - a))};
}

export const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${round(x)} ${round(y)}`).join("");

const pen = document.createElement("canvas").getContext("2d"), widths = new Map();
/** The width of words in a figure, in pixels. */
export function widthOf(words) {
  if (!widths.has(words)) {
    if (widths.size > 2000) widths.clear();
    pen.font = '12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif';
    widths.set(words, pen.measureText(words).width);
  }
  return widths.get(words);
}

/** Words that take no more than a width: those that do not fit end in an ellipsis. */
export function fitting(words, width) {
  if (widthOf(words) <= width) return words;
  const signs = [...words];
  while (signs.length > 1 && widthOf(`${signs.join("")}\u2026`) > width) signs.pop();
  return `${signs.join("")}\u2026`;
}

/** Entries of a legend in lines of a given width, under a figure: [drawing of a key, words]. Gives the height. */
export function legend(parts, entries, left, top, width) {
  let x = left, y = top;
  for (const [key, words] of entries) {
    const short = fitting(words, width - 34), wide = 30 + widthOf(short);
    if (x > left && x + wide > left + width) { x = left; y += 18; }
    parts.push(draw("g", {transform: `translate(${x} ${y})`}, key), draw("text", {x: x + 27, y: y + 4}, short));
    x += wide + 12;
  }
  return y - top + 18;
}

export const keyLine = (attributes) => draw("line", {x1: 0, y1: 0, x2: 21, y2: 0, ...attributes});

export const GRID = {stroke: "var(--grid)", "stroke-width": 1}, AXIS = {stroke: "var(--soft)", "stroke-width": 1};
export const text = (x, y, words, more = {}) => draw("text", {x: round(x), y: round(y), ...more}, words);
