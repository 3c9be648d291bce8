"use strict";
// The model file: its numbers, what it predicts from them, and its text.
const DATA = JSON.parse(document.getElementById("data").textContent);
const UNIT = DATA.units.functions;

// The functions as they are now, in whole numbers of UNIT: all else of the file stays as it is.
const functions = DATA.values.map((list) => [...list]);
const MODEL = JSON.parse(fileText(functions, DATA.edits));
const FEATURES = MODEL.features;
const IS_COUNT = MODEL.link === "log"; // the sum is the logarithm of the prediction
const LARGEST_LOGARITHM = 700; // of which the exponential is a number
const exponential = (sum) => Math.exp(Math.min(sum, LARGEST_LOGARITHM));

// Functions of pairs of features stand behind those of features.
const PAIRS = (MODEL.pairs ?? []).map((pair, i) => ({ ...pair, ...DATA.pairs[i] }));
const isPair = (k) => k >= FEATURES.length;
const pairOf = (k) => PAIRS[k - FEATURES.length];
const termName = (k) => (isPair(k) ? pairOf(k).name : FEATURES[k].name);

// JSON as Python's json.dumps(..., indent=1) spells it, so many levels deep.
function spelled(list, depth) {
  return JSON.stringify(list, null, 1).replaceAll("\n", "\n" + " ".repeat(depth));
}

function fileText(lists, edits) {
  const filled = [...lists.map((list) => spelled(list, 3)), spelled(edits, 1)];
  return DATA.pieces.map((piece, i) => piece + (filled[i] ?? "")).join("");
}

const isNumeric = (k) => FEATURES[k].kind === "numeric";

// How many bins have an order: all of a number but that of missing values alone.
const orderedBins = (k) => (isNumeric(k) ? FEATURES[k].cuts.length + 1 : 0);

// The bin that only missing values lie in, or -1.
function missingBin(k) {
  const { missing_bin: bin, groups } = FEATURES[k];
  if (bin === null) return -1;
  if (isNumeric(k)) return bin === orderedBins(k) ? bin : -1;
  return groups.includes(bin) || FEATURES[k].labels[bin] === DATA.other ? -1 : bin;
}

const edgesOf = (k) => [FEATURES[k].lower, ...FEATURES[k].cuts, FEATURES[k].upper];

// The bin of a value: a number, a category, or null where it is missing; -1 where there is none.
function binOf(k, value) {
  const feature = FEATURES[k];
  if (value === null) return feature.missing_bin ?? -1;
  if (isNumeric(k)) return feature.cuts.filter((cut) => cut <= value).length;
  const place = feature.categories.indexOf(value);
  return place < 0 ? feature.labels.indexOf(DATA.other) : feature.groups[place];
}

// What a model with these functions says of a row, one value for each feature: the parts in the unit of
// the functions, their sum with the intercept, and what follows from it. Whole numbers add up
// without rounding.
function predicted(row, lists = functions) {
  const wholes = row.map((value, k) => lists[k][binOf(k, value)] ?? 0);
  if (CLASSES.length) return predictedClass(wholes);
  PAIRS.forEach((pair, i) => wholes.push(lists[row.length + i][cellOf(pair, row)] ?? 0));
  const start = MODEL.intercept * DATA.units.intercept;
  const sum = start + UNIT * wholes.reduce((a, b) => a + b, 0);
  const [lower, upper] = MODEL.range ?? [-Infinity, Infinity];
  const unclipped = IS_COUNT ? exponential(sum) : sum;
  return {
    start,
    parts: wholes.map((whole) => whole * UNIT),
    sum,
    probability: MODEL.task === "binary" ? probabilityOf(sum) : null,
    unclipped,
    value: Math.min(Math.max(unclipped, lower), upper),
  };
}

function probabilityOf(score) {
  const small = Math.exp(-Math.abs(score));
  return (score >= 0 ? 1 : small) / (1 + small);
}
