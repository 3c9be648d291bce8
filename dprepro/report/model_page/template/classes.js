// Several classes: which of them are drawn, their functions one by one, and what they predict. A
// model of two classes or of a number has one function for each feature, and no CLASSES.
const CLASSES = DATA.classes;
const MOST_DRAWN = 10; // as many looks there are
const MOST_LISTED = 20;
const [chosenClass, byClass, chances] = ["class", "by-class", "chances"].map((id) => document.getElementById(id));

// The classes that are drawn, by place: at first those with the largest intercepts.
const firstDrawn = CLASSES.map((_, c) => c)
  .sort((a, b) => MODEL.intercept[b] - MODEL.intercept[a] || a - b)
  .slice(0, MOST_DRAWN)
  .sort((a, b) => a - b);
let drawnClasses = firstDrawn;

// Bands of several functions would cover each other.
const hasBands = () => drawnClasses.length < 2;

// The functions to draw, as lists of whole numbers: those of the drawn classes, or the only one.
const seriesOf = (list) =>
  CLASSES.length ? drawnClasses.map((c) => list.map((entry) => entry[c])) : [list];

// Five colours, of whole lines and full bars, then of broken lines and hollow bars.
const lookOf = (i) => (CLASSES.length ? `class-${Math.max(firstDrawn.indexOf(drawnClasses[i]), 0)}` : "");

function offerClasses(onChoice) {
  const all = CLASSES.length > MOST_DRAWN ? `the ${MOST_DRAWN} with the largest intercepts` : "all";
  const option = (name, value) => html("option", { value }, name);
  chosenClass.append(option(all, ""), ...CLASSES.map((name, c) => option(name, c)));
  chosenClass.addEventListener("change", () => {
    drawnClasses = chosenClass.value === "" ? firstDrawn : [Number(chosenClass.value)];
    showKeys();
    onChoice();
  });
  showKeys();
}

const keyOf = (i) => html("i", { class: `key line ${lookOf(i)}` });

function showKeys() {
  const keys = drawnClasses.map((c, i) => span("", keyOf(i), ` ${CLASSES[c]}`));
  document.getElementById("class-keys").replaceChildren(...keys);
  document.querySelector(".key.area").className = `key area ${lookOf(0)}`;
  document.documentElement.classList.toggle("no-bands", !hasBands());
}

// What a bin adds for each drawn class, in words.
const inClasses = (k, bin) =>
  drawnClasses.map((c) => `${CLASSES[c]} ${signed(functions[k][bin][c] * UNIT)}`).join(", ");

// What one bin adds for every class, as a table with the looks of those drawn; none of several bins.
function showByClass(k, bins) {
  byClass.hidden = bins.length > 1;
  if (byClass.hidden) return;
  const noise = FEATURES[k].noise, values = functions[k][bins[0]];
  const sizes = asColumn(values.map((whole) => whole * UNIT));
  const keys = CLASSES.map((_, c) => (drawnClasses.includes(c) ? [keyOf(drawnClasses.indexOf(c))] : []));
  const rows = CLASSES.map((name, c) =>
    html("tr", {},
      html("th", { scope: "row" }, ...keys[c], name),
      html("td", { class: "number" }, exactly(values[c] * UNIT, sizes[c])),
      html("td", { class: "number" }, noise === null ? "not known" : rough(DEVIATIONS * noise[bins[0]][c] * UNIT))));
  byClass.querySelector("tbody").replaceChildren(...rows);
}

// What such a model says of a row, given the entries of its bins (0 where there is none): of the
// chosen class, or of the likeliest one, what `predicted` says; and of all their sums.
function predictedClass(entries) {
  const partsOf = (c) => entries.map((entry) => (entry ? entry[c] * UNIT : 0));
  const starts = MODEL.intercept.map((whole) => whole * DATA.units.intercept);
  const sums = starts.map((start, c) => start + partsOf(c).reduce((a, b) => a + b, 0));
  const largest = Math.max(...sums), sizes = sums.map((sum) => Math.exp(sum - largest));
  const total = sizes.reduce((a, b) => a + b, 0);
  const probabilities = sizes.map((size) => size / total);
  const likeliest = sums.indexOf(largest);
  const c = chosenClass.value === "" ? likeliest : Number(chosenClass.value);
  return {
    start: starts[c], parts: partsOf(c), sum: sums[c], probability: probabilities[c],
    outcome: CLASSES[c], isLikeliest: c === likeliest, starts, sums, probabilities,
  };
}

// Every class with its probability, the likeliest first.
function showChances({ probabilities, sums, starts }) {
  const order = probabilities.map((_, c) => c).sort((a, b) => sums[b] - sums[a] || a - b);
  const listed = order.slice(0, MOST_LISTED);
  const [ofSums, ofStarts] = [sums, starts].map((list) => asColumn(listed.map((c) => list[c])));
  const cell = (number, text) => html("td", { class: "number" }, exactly(number, text));
  const rows = listed.map((c, i) =>
    html("tr", {},
      html("th", { scope: "row" }, CLASSES[c]),
      cell(probabilities[c], percent(probabilities[c])), cell(sums[c], ofSums[i]), cell(starts[c], ofStarts[i])));
  chances.querySelector("tbody").replaceChildren(...rows);
  const left = CLASSES.length - listed.length;
  document.getElementById("chances-left").textContent = left ? `${left} less likely classes are not listed.` : "";
}
