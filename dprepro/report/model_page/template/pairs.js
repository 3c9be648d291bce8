// Functions of two features: heat maps, the value of a cell, and a new one for it.
const maps = new Map();

// The cell of a row in a pair, or -1 where a feature has no bin for its value.
function cellOf(pair, row) {
  const first = binOf(pair.places[0], row[pair.places[0]]);
  const second = binOf(pair.places[1], row[pair.places[1]]);
  if (first < 0 || second < 0) return -1;
  return pair.first_groups[first] * pair.sides[1].length + pair.second_groups[second];
}

// From one colour through nothing to another, for -1 to 1.
const colourOf = (size) =>
  `color-mix(in srgb, var(${size < 0 ? "--of-released" : "--of-function"}) ${Math.round(100 * Math.abs(size))}%, var(--paper))`;

function mapOf(k) {
  const pair = pairOf(k), [rows, columns] = pair.sides;
  const left = 118, top = 8, width = 520, height = 24 * rows.length, wide = (width - left - 8) / columns.length;
  const room = Math.max(...columns.map((label) => textWidth(fitted(label, 11, 110), 11)));
  const root = svg("svg", { viewBox: `0 0 ${width} ${top + height + room + 14}`, role: "img" });
  root.setAttribute("aria-label", `${pair.name}: a cell for each pair of groups`);
  const cells = functions[k].map((_, cell) => {
    const row = Math.floor(cell / columns.length), column = cell % columns.length;
    const box = boxOf("cell", left + column * wide, top + (rows.length - 1 - row) * 24, wide, 24);
    box.append(svg("title"));
    box.addEventListener("click", () => select(k, cell));
    return box;
  });
  root.append(
    ...cells,
    ...rows.map((label, i) =>
      textOf(left - 6, top + (rows.length - 1 - i) * 24 + 16, "end", fitted(label, 11, 108))),
    ...columns.map((label, i) => {
      const x = left + (i + 0.5) * wide + 4, y = top + height + 8;
      const text = textOf(x, y, "end", fitted(label, 11, 110));
      text.setAttribute("transform", `rotate(-90 ${x} ${y})`);
      return text;
    }),
  );
  return { root, cells };
}

function chooser(side, label) {
  const options = side.map((text, i) => html("option", { value: String(i) }, text));
  return html("select", { "aria-label": label, autocomplete: "off" }, ...options);
}

function figureOf(k) {
  const pair = pairOf(k), map = mapOf(k);
  const names = pair.places.map((place) => FEATURES[place].name);
  const first = chooser(pair.sides[0], names[0]), second = chooser(pair.sides[1], names[1]);
  const value = html("input", { type: "number", step: "any", "aria-label": `Value of the cell of ${pair.name}`, autocomplete: "off" });
  const button = html("button", { type: "button" }, "Set");
  const said = html("p", { class: "quiet", role: "status" });
  const cell = () => Number(first.value) * pair.sides[1].length + Number(second.value);
  for (const side of [first, second]) side.addEventListener("change", () => select(k, cell()));
  button.addEventListener("click", () => setCell(k, cell(), value.value));
  maps.set(k, { ...map, first, second, value, said, cell });
  return html("figure", { class: "pair", "data-pair": pair.name },
    html("figcaption", {}, html("b", {}, pair.name)), map.root,
    html("div", { class: "tools" },
      html("label", {}, `${names[0]} `, first), html("label", {}, `${names[1]} `, second),
      html("label", {}, "Value ", value), button),
    said);
}

function select(k, cell) {
  const { first, second } = maps.get(k), columns = pairOf(k).sides[1].length;
  first.value = String(Math.floor(cell / columns));
  second.value = String(cell % columns);
  drawMap(k);
}

function setCell(k, cell, text) {
  const whole = rounded(Number(text) / UNIT);
  if (text === "" || !(Math.abs(whole) <= 2 ** 52)) return;
  const after = functions[k].map((old, i) => (i === cell ? whole : old));
  change(k, "set", `${cellName(k, cell)} to ${plain(whole * UNIT)}`, after);
}

function cellName(k, cell) {
  const [rows, columns] = pairOf(k).sides;
  return `${rows[Math.floor(cell / columns.length)]} & ${columns[cell % columns.length]}`;
}

function inCell(k, cell) {
  const noise = pairOf(k).noise, size = signed(functions[k][cell] * UNIT);
  const band = noise === null ? "" : `, noise \u00b1 ${rough(DEVIATIONS * noise[cell] * UNIT)}`;
  return `${cellName(k, cell)}: ${size}${band}`;
}

function drawMap(k) {
  const { cells, value, said, cell } = maps.get(k), chosen = cell();
  const most = Math.max(...functions[k].map(Math.abs)) || 1;
  const { noise } = pairOf(k), released = releasedOf(k);
  cells.forEach((box, i) => {
    const isLost = noise !== null && Math.abs(released[i]) < DEVIATIONS * noise[i];
    box.style.fill = colourOf(functions[k][i] / most);
    box.classList.toggle("lost", isLost);
    box.classList.toggle("chosen", i === chosen);
    box.firstChild.textContent = inCell(k, i);
  });
  value.value = String(functions[k][chosen] * UNIT);
  said.textContent = inCell(k, chosen) + (isEdited(k) ? " (edited)" : "");
}

function drawMaps() {
  for (const k of maps.keys()) drawMap(k);
}
