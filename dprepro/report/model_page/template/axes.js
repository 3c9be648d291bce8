// Scales, ticks, numbers in words, and elements of pages and pictures.
const SVG = "http://www.w3.org/2000/svg";
const DEVIATIONS = 2; // of the noise, on either side: the band

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);
const html = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

const span = (kind, ...children) => html("span", { class: kind }, ...children);

const lineOf = (kind, x1, x2, y1, y2 = y1) => svg("line", { class: kind, x1, x2, y1, y2 });
const boxOf = (kind, x, y, width, height) => svg("rect", { class: kind, x, y, width, height });
const textOf = (x, y, anchor, text) => svg("text", { x, y, "text-anchor": anchor }, text);

// Few digits, no trailing zeros: 0.1235, 12,350.
const WORDS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const AS_TICK = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const SIGNED = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, signDisplay: "exceptZero" });
const isExtreme = (number) => number !== 0 && !(Math.abs(number) >= 1e-4 && Math.abs(number) < 1e7);

const minus = (text) => text.replace("-", "\u2212");
const tick = (number) => minus(isExtreme(number) ? number.toPrecision(3) : AS_TICK.format(number));
const words = (number) => minus(isExtreme(number) ? number.toPrecision(4) : WORDS.format(number));
const rough = (number) => words(Number(number.toPrecision(2)));
const signed = (number) => minus(isExtreme(number) ? number.toPrecision(3) : SIGNED.format(number));
// As Python's format :g, for the file.
const plain = (number) => String(Number(number.toPrecision(6)));
// By what a function of counts multiplies a prediction; nothing for other models.
const factor = (number) => (IS_COUNT ? `times ${words(Number(exponential(number).toPrecision(3)))}` : "");
const withFactor = (number) => signed(number) + (IS_COUNT ? ` (${factor(number)})` : "");
const percent = (share) => `${WORDS.format(Number((100 * share).toPrecision(3)))}\u00a0%`;

// 1, 2 or 5 times a power of ten, at least as large as asked.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least * 0.999) ?? 10);
}

function ticks(lower, upper, most) {
  const step = niceStep((upper - lower) / most);
  if (!(step > 0) || !Number.isFinite(step)) return [];
  const first = Math.ceil(lower / step - 1e-9), last = Math.floor(upper / step + 1e-9);
  return range(first, last).map((i) => Number((i * step).toPrecision(12)));
}

// How wide a text is, and as much of it as fits, at the size of the texts in pictures.
const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

function fitted(text, size, room) {
  let short = text;
  while (short.length > 1 && textWidth(short, size) > room) short = `${short.slice(0, -2).trimEnd()}…`;
  return short;
}

// How many letters two names have in common at their beginning.
function sharedStart(a, b) {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

// Names that fit. Names that would read the same go on where they begin to differ.
function distinct(names, size, room) {
  const short = names.map((name) => fitted(name, size, room));
  return names.map((name, i) => {
    const alike = names.filter((other, j) => short[j] === short[i] && other !== name);
    if (!alike.length) return short[i];
    const same = Math.min(...alike.map((other) => sharedStart(name, other)));
    return fitted(`${name.slice(0, 4)}…${name.slice(same)}`, size, room);
  });
}

// A bin in words; the file calls it by its label.
function binName(k, bin) {
  if (bin === missingBin(k)) return "missing";
  const { cuts, labels } = FEATURES[k];
  if (!isNumeric(k)) return labels[bin];
  if (!cuts.length) return "all values";
  if (bin === 0) return `below ${tick(cuts[0])}`;
  const from = tick(cuts[bin - 1]);
  return bin === cuts.length ? `${from} and above` : `${from} to ${tick(cuts[bin])}`;
}

function nameOf(k) {
  const { name, measured_in: unit } = FEATURES[k];
  return unit ? `${name} (${unit})` : name;
}

// Of the only function that is drawn; null where several are, or it is not known.
function noiseOf(k, bin) {
  const { noise } = FEATURES[k];
  return noise === null || !hasBands() ? null : seriesOf([noise[bin]])[0][0] * UNIT;
}

function shareOf(k, bin) {
  const counts = FEATURES[k].counts, total = counts.reduce((a, b) => a + b, 0);
  return total > 0 ? counts[bin] / total : 0;
}

// The lowest and highest value to make room for; a band that dwarfs its function is cut.
function limitsOf(k) {
  const released = seriesOf(releasedOf(k)).flat(), low = [], high = [];
  const all = [...seriesOf(functions[k]).flat(), ...released].map((whole) => whole * UNIT);
  const lowest = Math.min(...all), highest = Math.max(...all), room = 0.75 * (highest - lowest);
  released.forEach((whole, bin) => {
    const width = hasBands() ? DEVIATIONS * (noiseOf(k, bin) ?? 0) : 0;
    low.push(whole * UNIT - width);
    high.push(whole * UNIT + width);
  });
  return [
    Math.min(lowest, 0, Math.max(Math.min(...low), lowest - room)),
    Math.max(highest, 0, Math.min(Math.max(...high), highest + room)),
  ];
}

// One scale for all pictures compares functions. On it each has to fill this share to be readable.
const READABLE = 0.2;
function isOneScaleReadable(all) {
  const [lower, upper] = widest(all.map(limitsOf));
  const fills = (k) => {
    const values = [0, ...seriesOf(functions[k]).flat()].map((whole) => whole * UNIT);
    return Math.max(...values) - Math.min(...values) >= READABLE * (upper - lower);
  };
  return 2 * all.filter(fills).length >= all.length;
}

function widest(limits) {
  const lower = Math.min(...limits.map(([low]) => low));
  const upper = Math.max(...limits.map(([, high]) => high));
  return upper > lower ? [lower, upper] : [lower - 1, upper + 1];
}

// The order in which bins stand: numbers as they are, categories as the card lists them, then others.
function displayOrder(k) {
  const { labels, groups } = FEATURES[k], bins = labels.map((_, bin) => bin);
  if (isNumeric(k)) return bins;
  const rank = (bin) => (bin === missingBin(k) ? 2 : labels[bin] === DATA.other ? 1 : 0);
  return bins.sort((a, b) => rank(a) - rank(b) || groups.indexOf(a) - groups.indexOf(b) || a - b);
}

// Whether an axis can show the range of a number with its bins.
function hasRoom(k) {
  const { lower, upper } = FEATURES[k], span = upper - lower;
  return Number.isFinite(span) && span > 1e-12 * Math.max(Math.abs(lower), Math.abs(upper));
}
