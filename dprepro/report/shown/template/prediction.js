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
  const label = html("label", { for: input.id }, name, ...(unit ? [html("span", { class: "quiet" }, ` (${unit})`)] : []));
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
  const option = (value, text) => html("option", { value, selected: value === String(categories.indexOf(row[k])) }, text);
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
  note.textContent = "";
  if (!isNumeric(k)) return;
  if (value === null) note.textContent = missing === null ? "missing: the model has no bin for it, so it adds 0" : "missing";
  else if (value < lower || value > upper) note.textContent = `outside ${tick(lower)} to ${tick(upper)}: counts in the outermost bin`;
  else note.textContent = `${tick(lower)} to ${tick(upper)}`;
}

function said(k) {
  const value = row[k];
  if (value === null) return "missing";
  return value === undefined ? "any other" : isNumeric(k) ? String(value) : value;
}

// A number in words, with all its digits for whoever reads the page by program.
const exactly = (number, text, attributes = {}) => html("data", { ...attributes, value: number }, text);

function showPrediction() {
  const found = predicted(row), before = predicted(row, FEATURES.map((_, k) => releasedOf(k)));
  const result = document.getElementById("result");
  result.replaceChildren(...headline(found), ...comparison(found, before));
  document.getElementById("row-now").textContent = inShort(found);
  showParts(found);
}

function inShort(found) {
  if (found.probability === null) return `The values typed in below give ${DATA.outcome} = ${words(found.value)}.`;
  return `The values typed in give ${DATA.outcome} a probability of ${percent(found.probability)} (log odds ${signed(found.sum)}).`;
}

function headline(found) {
  if (found.probability === null) {
    const clipped = found.value === found.sum ? "" : `, from ${words(found.sum)}, clipped to the range of the target`;
    return [html("p", { class: "headline" }, exactly(found.value, words(found.value), { id: "prediction" }), html("span", {}, `${DATA.axis}${clipped}`))];
  }
  return [
    html("p", { class: "headline" }, exactly(found.probability, percent(found.probability), { id: "prediction" }), html("span", {}, `probability of ${DATA.outcome}`)),
    html("p", { class: "quiet" }, "log odds ", exactly(found.sum, signed(found.sum), { id: "score" })),
  ];
}

function comparison(found, before) {
  if (found.sum === before.sum) return [];
  const text = found.probability === null ? words(before.value) : percent(before.probability);
  return [html("p", { class: "quiet", id: "as-released" }, `Without the edits: ${text}.`)];
}

// From the intercept to the sum, the largest parts first.
function showParts(found) {
  const order = found.parts.map((_, k) => k).sort((a, b) => Math.abs(found.parts[b]) - Math.abs(found.parts[a]) || a - b);
  const lines = [{ name: "intercept", size: found.start, from: 0, kind: "start" }];
  let place = found.start;
  for (const k of order) {
    const edited = isEdited(k) ? " (edited)" : "";
    lines.push({ name: `${FEATURES[k].name} = ${said(k)}${edited}`, size: found.parts[k], from: place });
    place += found.parts[k];
  }
  lines.push({ name: "sum", size: found.sum, from: 0, kind: "sum" });
  const ends = lines.flatMap(({ from, size }) => [from, from + size]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)], span = high - low || 1;
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(...lines.map(({ size }) => Math.abs(size))) || 1)));
  const inTable = (size) => (digits > 8 ? signed(size) : minus((size > 0 ? "+" : "") + size.toFixed(digits)));
  const rows = lines.map(({ name, size, from, kind = "" }) => {
    const bar = html("i", { class: size < 0 ? "falls" : "rises" });
    bar.style.left = `${(100 * (Math.min(from, from + size) - low)) / span}%`;
    bar.style.width = `${(100 * Math.abs(size)) / span}%`;
    const origin = html("b");
    origin.style.left = `${(-100 * low) / span}%`;
    return html("tr", { class: kind }, html("th", { scope: "row" }, name), html("td", { class: "number" }, exactly(size, inTable(size))), html("td", { class: "track", "aria-hidden": "true" }, html("span", {}, origin, bar)));
  });
  document.querySelector("#parts tbody").replaceChildren(...rows);
}
