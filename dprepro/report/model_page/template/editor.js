// The large chart in its dialog: tools for what is selected, and the reason of the last edit.
const dialog = document.getElementById("editor");
const tool = Object.fromEntries(
  [...dialog.querySelectorAll("[data-tool]")].map((element) => [element.dataset.tool, element])
);
let open = null; // { k, picture, pointer, limits, bins } while the dialog shows a function
let isEven = false;

function openEditor(k) {
  if (!dialog.open) dialog.showModal();
  open = { k, limits: limitsOf(k), bins: [] };
  document.getElementById("editor-title").textContent = nameOf(k);
  isEven = isNumeric(k) && !hasRoom(k);
  tool.even.checked = isEven;
  tool.even.closest("label").hidden = !isNumeric(k) || !hasRoom(k);
  for (const name of ["line", "rise", "fall"]) tool[name].hidden = !isNumeric(k);
  fillRange(k);
  buildLarge();
  const last = edits.at(-1);
  showStatus(last && positionOf(last.feature) === k ? `Last edit: ${inWords(last)}.` : "");
}

function buildLarge(bins = null) {
  const { k } = open, box = document.getElementById("large");
  // Categories need room for a finger each.
  const least = isNumeric(k) ? 0 : FEATURES[k].labels.length * Math.max(24, 6 * drawnClasses.length) + 70;
  const width = Math.max(box.clientWidth, least, 240);
  const height = (box.clientWidth < 500 ? 300 : 380) + (isNumeric(k) ? 0 : 60);
  const picture = chart(k, { width, height, isSmall: false, isEven });
  picture.root.classList.toggle("scrolls", width > box.clientWidth);
  picture.root.setAttribute("aria-label", `${nameOf(k)}: ${DATA.axis}`);
  box.replaceChildren(picture.root);
  open.picture = picture;
  picture.draw(open.limits);
  open.pointer = makePointable(k, picture, { select: showSelection, move: moveBins });
  const places = bins?.map(open.pointer.placeOf) ?? [0];
  open.pointer.select(Math.min(...places), Math.max(...places));
  open.pointer.describe();
}

function redraw() {
  const { k, picture, pointer, bins } = open;
  open.limits = widest([open.limits, limitsOf(k)]);
  picture.draw(open.limits, bins);
  pointer.describe();
  showTools();
}

function showSelection(bins) {
  open.bins = bins;
  open.picture.draw(open.limits, bins);
  showTools();
}

function rangeOf(k, bins) {
  const edges = edgesOf(k);
  return `from ${plain(edges[bins[0]])} to ${plain(edges[bins.at(-1) + 1])}`;
}

// As the command line words what was edited.
function wordsOf(k, bins) {
  if (isNumeric(k) && bins.length > 1) return rangeOf(k, bins);
  const names = bins.map((bin) => FEATURES[k].labels[bin]).join(", ");
  return names.length <= 5000 ? names : `${bins.length} bins`; // the file limits a detail
}

function showTools() {
  const { k, bins } = open, list = functions[k];
  const isOrdered = bins.every((bin) => bin < orderedBins(k));
  const isOneValue = bins.every((bin) => list[bin] === list[bins[0]]);
  tool.from.value = String(open.pointer.placeOf(bins[0]));
  tool.to.value = String(open.pointer.placeOf(bins.at(-1)));
  const share = percent(Number(bins.reduce((sum, bin) => sum + shareOf(k, bin), 0).toPrecision(2)));
  const name = bins.length === 1 ? binName(k, bins[0]) : wordsOf(k, bins);
  if (CLASSES.length) {
    tool.readout.textContent = `${name}: ${share} of the rows`;
    return showByClass(k, bins);
  }
  if (document.activeElement !== tool.value) {
    tool.value.value = isOneValue ? plain(list[bins[0]] * UNIT) : "";
    tool.value.placeholder = "several";
  }
  tool.level.disabled = bins.length < 2 || isOneValue;
  tool.line.disabled = !isOrdered || bins.length === orderedBins(k);
  tool.back.disabled = bins.every((bin) => list[bin] === releasedOf(k)[bin]);
  const noise = bins.length === 1 ? noiseOf(k, bins[0]) : null;
  const size = isOneValue ? signed(list[bins[0]] * UNIT) : `${bins.length} bins`;
  const band = noise === null ? "" : ` ± ${rough(DEVIATIONS * noise)}`;
  const times = IS_COUNT && isOneValue ? ` (${factor(list[bins[0]] * UNIT)})` : "";
  tool.readout.textContent = `${name}: ${size}${band}${times}, ${share} of the rows`;
  showEditsOf(k);
}

function showEditsOf(k) {
  const last = edits.at(-1), isHere = last?.isOwn && positionOf(last.feature) === k;
  tool.undo.disabled = edits.length === 0;
  tool.redo.disabled = undone.length === 0;
  tool.why.disabled = !isHere;
  if (document.activeElement !== tool.why) tool.why.value = isHere ? last.note : "";
}

function showStatus(said) {
  tool.status.textContent = said;
}

function edit(action, detail, after, gesture = null) {
  const { k } = open;
  if (after.some((whole) => !(Math.abs(whole) <= 2 ** 52))) {
    return showStatus("That value is too large for the file.");
  }
  if (!change(k, action, detail, after, gesture) && gesture === null) {
    showStatus("Nothing to change: the function is like that already.");
  }
}

function moveBins(bins, wholes, gesture) {
  if (CLASSES.length) return; // their functions are not edited
  const { k } = open, after = withBins(k, bins, (bin) => functions[k][bin] + wholes);
  const before = edits.at(-1)?.gesture === gesture ? edits.at(-1).before : functions[k];
  const moved = (after[bins[0]] - before[bins[0]]) * UNIT;
  const detail = bins.length === 1
    ? `${wordsOf(k, bins)} to ${plain(after[bins[0]] * UNIT)}`
    : `${wordsOf(k, bins)} by ${plain(moved)}`;
  edit("set", detail, after, gesture);
}

function setBins() {
  const { k, bins } = open, value = tool.value.valueAsNumber;
  if (!Number.isFinite(value)) return showStatus("Type a number first.");
  edit("set", `${wordsOf(k, bins)} to ${plain(value)}`, withBins(k, bins, () => value / UNIT));
}

function fillRange(k) {
  const options = () =>
    displayOrder(k).map((bin, place) => html("option", { value: place }, binName(k, bin)));
  tool.from.replaceChildren(...options());
  tool.to.replaceChildren(...options());
}

function drawLine() {
  const { k, bins } = open;
  edit("interpolate", rangeOf(k, bins), interpolated(k, bins[0], bins.at(-1)));
}

function takeBack() {
  const { k, bins } = open, released = releasedOf(k);
  const after = withBins(k, bins, (bin) => released[bin]);
  edit("set", `${wordsOf(k, bins)} back to what was released`, after);
}

const onTool = {
  close: () => dialog.close(),
  previous: () => turn(-1),
  next: () => turn(1),
  set: setBins,
  level: () => edit("level", wordsOf(open.k, open.bins), levelled(open.k, open.bins)),
  line: drawLine,
  rise: () => edit("monotone", "increasing, nearest under the bin counts", monotone(open.k, true)),
  fall: () => edit("monotone", "decreasing, nearest under the bin counts", monotone(open.k, false)),
  back: takeBack,
  undo: () => undo(),
  redo: () => redo(),
};

// To the function before or after in the order of importance.
function turn(by) {
  const n = DATA.order.length, place = DATA.order.indexOf(open.k);
  openEditor(DATA.order[(place + by + n) % n]); // the focus stays on the button
}

for (const [name, act] of Object.entries(onTool)) tool[name].addEventListener("click", act);
for (const end of [tool.from, tool.to]) {
  end.addEventListener("change", () => {
    const [from, to] = [Number(tool.from.value), Number(tool.to.value)];
    const own = Number(end.value); // the end that was just chosen counts, if the other is beyond
    open.pointer.select(from > to ? own : from, from > to ? own : to);
  });
}
tool.value.addEventListener("keydown", (event) => event.key === "Enter" && setBins());
tool.why.addEventListener("input", () => note(edits.at(-1), tool.why.value));
tool.even.addEventListener("change", () => {
  isEven = tool.even.checked;
  buildLarge(open.bins);
});
dialog.addEventListener("close", () => {
  if (!dialog.open) open = null; // the next function can be open before the event comes
});
// Whoever undoes an edit of another function is shown that function.
dialog.addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase(), isTyping = event.target.matches("input:not([type=checkbox])");
  if (!(event.ctrlKey || event.metaKey) || isTyping || !["z", "y"].includes(key)) return;
  event.preventDefault();
  if (key === "y" || event.shiftKey) redo();
  else undo();
});
listeners.push((k, said) => {
  if (!open) return;
  if (isPair(k)) return dialog.close();
  if (k === open.k) redraw();
  else openEditor(k);
  showStatus(said);
});

// Half of a character, which a file in UTF-8 cannot hold.
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function note(edit, text) {
  edit.note = text.trim().replace(HALF, "\ufffd");
  listEdits();
}
