// Edits: what each makes of a function, the list of them, and the way back.
// `dprepro.additive.editing` has the same for the command line.
const edits = DATA.edits.map((edit) => ({ ...edit, isOwn: false, note: "" }));
const undone = [];
const listeners = [];

const positionOf = (name) => functions.findIndex((_, k) => termName(k) === name);
const isSame = (a, b) => a.every((value, i) => value === b[i]);

// The function before any edit.
function releasedOf(k) {
  return edits.find((edit) => edit.feature === termName(k))?.before ?? functions[k];
}

const isEdited = (k) => !isSame(functions[k], releasedOf(k));

function announce(k, said) {
  for (const listener of listeners) listener(k, said);
}

// Make a function what `after` says, in whole numbers. Edits of one gesture, such as a key that is
// pressed again, are one edit. Returns whether anything changed.
function change(k, action, detail, after, gesture = null) {
  if (isSame(functions[k], after)) return false;
  const last = edits.at(-1);
  if (gesture !== null && last?.gesture === gesture && last.note === "" && !undone.length) {
    Object.assign(last, { after, detail });
    if (isSame(last.before, after)) edits.pop();
  } else {
    const feature = termName(k);
    edits.push({ feature, action, detail, before: functions[k], after, isOwn: true, note: "", gesture });
  }
  undone.length = 0;
  functions[k] = after;
  announce(k, inWords({ feature: termName(k), action, detail, note: "" }));
  return true;
}

function undo() {
  const edit = edits.pop();
  if (!edit) return null;
  undone.push(edit);
  const k = positionOf(edit.feature);
  functions[k] = edit.before;
  announce(k, `Undone: ${inWords(edit)}`);
  return k;
}

function redo() {
  const edit = undone.pop();
  if (!edit) return null;
  edits.push(edit);
  const k = positionOf(edit.feature);
  functions[k] = edit.after;
  announce(k, `Done again: ${inWords(edit)}`);
  return k;
}

const detailOf = ({ detail, note }) => (note ? `${detail}; why: ${note}` : detail);
const inWords = (edit) => `${edit.feature}: ${edit.action} ${detailOf(edit)}`;

// All edits as the model file lists them.
const listed = () =>
  edits.map((edit) => {
    const { feature, action, before, after } = edit;
    return { feature, action, detail: detailOf(edit), before, after };
  });

// The model file with all edits, as `dprepro.additive.file.save_model` would write it.
const editedFile = () => fileText(functions, listed());

let saved = JSON.stringify(listed());
const isSaved = () => JSON.stringify(listed()) === saved;

// To the nearest whole number, of two the even one, as NumPy rounds. No -0.
function rounded(number) {
  const below = Math.floor(number);
  if (number - below !== 0.5) return Math.round(number) + 0;
  return below % 2 === 0 ? below : below + 1;
}

function weightedMean(list, weights) {
  const total = weights.reduce((a, b) => a + b, 0);
  if (!(total > 0)) return list.reduce((a, b) => a + b, 0) / list.length;
  return list.reduce((sum, value, i) => sum + weights[i] * value, 0) / total;
}

function withBins(k, bins, valueOf) {
  const after = [...functions[k]];
  for (const bin of bins) after[bin] = rounded(valueOf(bin));
  return after;
}

function levelled(k, bins) {
  const pick = (list) => bins.map((bin) => list[bin]);
  const mean = weightedMean(pick(functions[k]), pick(FEATURES[k].counts));
  return withBins(k, bins, () => mean);
}

// A line between the neighbours of a range of bins, level at an end; null where it has none.
function interpolated(k, first, last) {
  const edges = edgesOf(k), now = functions[k];
  const middle = (bin) => (edges[bin] + edges[bin + 1]) / 2;
  const left = first - 1, right = last + 1;
  const hasLeft = left >= 0, hasRight = right < orderedBins(k);
  if (!hasLeft && !hasRight) return null;
  const bins = range(first, last);
  if (!hasLeft || !hasRight) return withBins(k, bins, () => now[hasLeft ? left : right]);
  const width = middle(right) - middle(left);
  const slope = width > 0 ? (now[right] - now[left]) / width : 0;
  return withBins(k, bins, (bin) => now[left] + slope * (middle(bin) - middle(left)));
}

// Isotonic regression by pooling adjacent violators, weighted by the counts of the bins.
function monotone(k, isRising) {
  const n = orderedBins(k), sign = isRising ? 1 : -1, now = functions[k];
  const counts = FEATURES[k].counts.slice(0, n).map((count) => count * DATA.units.counts);
  const total = counts.reduce((a, b) => a + b, 0);
  const blocks = [];
  for (let bin = 0; bin < n; bin++) {
    // A bin without rows has no say, but needs a weight.
    const weight = Math.max(counts[bin], 1e-9 * Math.max(total, 1));
    let block = { sum: weight * now[bin] * sign, weight, bins: [bin] };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const { sum, weight: more, bins } = blocks.pop();
      block = { sum: sum + block.sum, weight: more + block.weight, bins: [...bins, ...block.bins] };
    }
    blocks.push(block);
  }
  const after = [...now];
  for (const { sum, weight, bins } of blocks) {
    if (bins.length === 1) continue;
    for (const bin of bins) after[bin] = rounded((sign * sum) / weight);
  }
  return after;
}

const range = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
