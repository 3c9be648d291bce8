// What a prediction is made of, for values that the reader types in.
const row = FEATURES.map((_, k) => commonValue(k));

// A number in the bin in the middle of the rows; a category of the most common bin that has one.
function commonValue(k) {
  const { counts, categories, groups } = FEATURES[k];
  if (!isNumeric(k)) {
    const rows = groups.map((bin) => counts[bin]);
    return categories[rows.indexOf(Math.max(...rows))] ?? null;
  }
  const edges = edgesOf(k), ordinary = counts.slice(0, orderedBins(k));
  const half = ordinary.reduce((a, b) => a + b, 0) / 2;
  let sum = 0;
  const bin = Math.max(ordinary.findIndex((count) => (sum += count) >= half), 0);
  return roundest(edges[bin], edges[bin + 1], (number) => binOf(k, number) === bin);
}

// The number between two others with the fewest digits that fits.
function roundest(lower, upper, fits) {
  const largest = Math.max(Math.abs(lower), Math.abs(upper)) || 1;
  for (let step = 10 ** Math.ceil(Math.log10(largest)), i = 0; i < 8; step /= 10, i++) {
    const number = Number((Math.ceil(lower / step) * step).toPrecision(12)) + 0;
    if (number >= lower && number <= upper && fits(number)) return number;
  }
  return (lower + upper) / 2;
}

function fieldOf(k) {
  const { name, measured_in: unit } = FEATURES[k];
  const input = isNumeric(k) ? numberField(k) : choiceField(k);
  const note = html("small", { class: "quiet", id: `note-${k}` });
  input.setAttribute("aria-describedby", `note-${k}`);
  const take = () => {
    row[k] = valueIn(k, input);
    showNote(k, note);
    showPrediction();
  };
  input.addEventListener("input", take);
  input.addEventListener("change", take);
  showNote(k, note);
  const label = html("label", { for: input.id }, name, span("quiet", unit ? ` (${unit})` : ""));
  return html("div", { class: "field" }, label, input, note);
}

function numberField(k) {
  const { lower, upper } = FEATURES[k];
  return html("input", {
    id: `value-${k}`, type: "number", step: "any", inputmode: "decimal", value: row[k],
    min: lower, max: upper, placeholder: "missing", autocomplete: "off",
  });
}

function choiceField(k) {
  const { categories, labels, missing_bin: missing } = FEATURES[k];
  const first = String(categories.indexOf(row[k]));
  const option = (value, text) => html("option", { value, selected: value === first }, text);
  const choices = categories.map((category, i) => option(String(i), category));
  if (labels.includes(DATA.other)) choices.push(option("other", "any other"));
  if (missing !== null || !categories.length) choices.push(option("missing", "missing"));
  return html("select", { id: `value-${k}`, autocomplete: "off" }, ...choices);
}

// What a field holds: a number or a category; null if it is missing; undefined for any other one.
function valueIn(k, input) {
  if (isNumeric(k)) return input.value === "" ? null : Number(input.value);
  if (input.value === "missing") return null;
  return FEATURES[k].categories[input.value];
}

function showNote(k, note) {
  const { lower, upper, missing_bin: missing } = FEATURES[k], value = row[k];
  const bounds = `${tick(lower ?? 0)} to ${tick(upper ?? 0)}`;
  const isOutside = value !== null && (value < lower || value > upper);
  if (!isNumeric(k)) note.textContent = "";
  else if (isOutside) note.textContent = `outside ${bounds}: counts in the outermost bin`;
  else if (value !== null) note.textContent = bounds;
  else note.textContent = missing === null ? "missing: no bin for it, so it adds 0" : "missing";
}

function said(k) {
  const value = row[k];
  if (value === null) return "missing";
  return value === undefined ? "any other" : isNumeric(k) ? String(value) : value;
}

// A number in words, with all its digits for whoever reads the page by program.
const exactly = (number, text, attributes = {}) => html("data", { ...attributes, value: number }, text);

function showPrediction() {
  const found = predicted(row), before = predicted(row, functions.map((_, k) => releasedOf(k)));
  const result = document.getElementById("result");
  result.replaceChildren(...headline(found), ...comparison(found, before));
  if (CLASSES.length) {
    showChances(found);
    document.getElementById("parts-of").textContent = `What adds up to the log odds of ${found.outcome}:`;
  }
  document.getElementById("row-now").textContent = inShort(found);
  showParts(found);
}

function inShort(found) {
  const { outcome = DATA.outcome, probability, sum, value } = found;
  if (probability === null) return `The values typed in give ${outcome} = ${words(value)}.`;
  const chance = `a probability of ${percent(probability)} (log odds ${signed(sum)})`;
  return `The values typed in give ${outcome} ${chance}.`;
}

function headline({ probability, sum, unclipped, value, isLikeliest, outcome = DATA.outcome }) {
  const large = (number, text, said) =>
    html("p", { class: "headline" }, exactly(number, text, { id: "prediction" }), span("", said));
  const score = exactly(sum, signed(sum), { id: "score" });
  if (probability === null) {
    const clipped = value === unclipped ? "" : `, clipped to the range of the target from ${words(unclipped)}`;
    const named = large(value, words(value), `${IS_COUNT ? outcome : DATA.axis}${clipped}`);
    return IS_COUNT ? [named, html("p", { class: "quiet" }, "logarithm ", score)] : [named];
  }
  const rank = isLikeliest ? ", the likeliest class" : "";
  return [
    large(probability, percent(probability), `probability of ${outcome}${rank}`),
    html("p", { class: "quiet" }, "log odds ", score),
  ];
}

function comparison(found, before) {
  if (found.sum === before.sum) return [];
  const text = found.probability === null ? words(before.value) : percent(before.probability);
  return [html("p", { class: "quiet", id: "as-released" }, `Without the edits: ${text}.`)];
}

// From the intercept to the sum, the largest parts first: each from where the last one ended.
function linesOf(found) {
  const lines = [{ name: "intercept", size: found.start, from: 0, kind: "start" }];
  const size = (k) => Math.abs(found.parts[k]);
  let place = found.start;
  for (const k of found.parts.map((_, k) => k).sort((a, b) => size(b) - size(a) || a - b)) {
    const what = isPair(k) ? pairOf(k).name : `${FEATURES[k].name} = ${said(k)}`;
    const name = `${what}${isEdited(k) ? " (edited)" : ""}`;
    lines.push({ name, size: found.parts[k], from: place, kind: "" });
    place += found.parts[k];
  }
  return [...lines, { name: "sum", size: found.sum, from: 0, kind: "sum" }];
}

function showParts(found) {
  const lines = linesOf(found), ends = lines.flatMap(({ from, size }) => [from, from + size]);
  const low = Math.min(0, ...ends), width = Math.max(0, ...ends) - low || 1;
  const written = asColumn(lines.map(({ size }) => size));
  // Of counts: the intercept and the sum as counts, and what each feature multiplies by.
  const asCount = (size, kind) => (kind ? words(exponential(size)) : factor(size));
  const rows = lines.map(({ name, size, from, kind }, i) => {
    const counts = IS_COUNT ? [html("td", { class: "number" }, asCount(size, kind))] : [];
    const bar = html("i", { class: size < 0 ? "falls" : "rises" }), zero = html("b");
    bar.style.left = `${(100 * (Math.min(from, from + size) - low)) / width}%`;
    bar.style.width = `${(100 * Math.abs(size)) / width}%`;
    zero.style.left = `${(-100 * low) / width}%`;
    return html("tr", { class: kind },
      html("th", { scope: "row" }, name),
      html("td", { class: "number" }, exactly(size, written[i])),
      ...counts,
      html("td", { class: "track", "aria-hidden": "true" }, span("", zero, bar)));
  });
  document.querySelector("#parts tbody").replaceChildren(...rows);
}

// Numbers with a sign and the same number of decimals, four digits for the largest.
function asColumn(numbers) {
  const largest = Math.max(...numbers.map(Math.abs)) || 1;
  const digits = Math.max(0, 3 - Math.floor(Math.log10(largest)));
  if (digits > 8) return numbers.map(signed);
  return numbers.map((number) => minus((number > 0 ? "+" : "") + number.toFixed(digits)));
}
