// The page: the overview of all functions, the list of edits, the download.
const cards = new Map();
const PRINTED = [212, 170]; // paper has four pictures beside each other, and shrinks them
const scale = document.getElementById("scale");

function card(k) {
  const picture = html("span", { class: "picture", "aria-hidden": "true" });
  const size = words(Number(DATA.importance[k].toPrecision(3)));
  const share = html("i"), { measured_in: unit } = FEATURES[k];
  share.style.width = `${(100 * DATA.importance[k]) / (DATA.importance[DATA.order[0]] || 1)}%`;
  const badge = html("span", { class: "badge", hidden: true }, "edited");
  const button = html(
    "button",
    { type: "button", class: "card", "data-feature": FEATURES[k].name },
    span("title", html("b", {}, FEATURES[k].name), span("quiet", unit ? ` (${unit})` : ""), badge),
    picture,
    span("importance", `importance ${size} ${DATA.unit}`, html("span", { class: "meter", "aria-hidden": "true" }, share)),
  );
  button.addEventListener("click", () => {
    openEditor(k);
    open.pointer.focus();
  });
  cards.set(k, { button, picture, badge });
  return html("li", {}, button);
}

function drawCards(width = 0, height = 214) {
  const all = widest(DATA.order.map(limitsOf));
  for (const [k, { picture, badge }] of cards) {
    const room = width || Math.max(picture.clientWidth, 160);
    const drawing = chart(k, { width: room, height, isSmall: true });
    drawing.draw(scale.checked ? all : widest([limitsOf(k)]));
    picture.replaceChildren(drawing.root);
    badge.hidden = !isEdited(k);
  }
}

function listEdits() {
  const list = document.getElementById("edit-list");
  document.getElementById("no-edits").hidden = edits.length > 0;
  const focused = document.activeElement?.dataset.edit;
  list.replaceChildren(...edits.map(edited));
  if (focused) list.querySelector(`[data-edit="${focused}"]`)?.focus();
  for (const button of document.querySelectorAll("[data-history]")) {
    const isUndo = button.dataset.history === "undo";
    button.disabled = (isUndo ? edits : undone).length === 0;
  }
  document.getElementById("unsaved").hidden = isSaved();
}

function edited(edit, i) {
  const item = html("li", {}, html("span", {}, `${edit.feature}: ${edit.action} ${edit.detail}`));
  if (!edit.isOwn) return item;
  const field = html("input", {
    type: "text", value: edit.note, maxlength: 2000, placeholder: "Why? (kept in the file)",
    "aria-label": `Why edit ${i + 1} was made`, "data-edit": i, autocomplete: "off",
  });
  field.addEventListener("change", () => note(edit, field.value));
  item.append(field);
  return item;
}

function download() {
  const text = editedFile(), said = document.getElementById("downloaded");
  const file = new Blob([text], { type: "application/json" });
  if (file.size > DATA.largest) {
    said.textContent = "The file would be larger than a model file can be: undo some edits.";
    return;
  }
  const link = html("a", { href: URL.createObjectURL(file), download: DATA.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  saved = JSON.stringify(listed());
  said.textContent = `Saved as ${DATA.file}.`;
  listEdits();
}

for (const k of DATA.order) {
  document.getElementById("functions-list").append(card(k));
  document.getElementById("fields").append(fieldOf(k));
}
PAIRS.forEach((_, i) => document.getElementById("pairs-list").append(figureOf(FEATURES.length + i)));
let isReadable = isOneScaleReadable(DATA.order);
scale.checked = isReadable;
scale.addEventListener("change", () => {
  sayScale();
  drawCards();
});
function sayScale() {
  const why = isReadable
    ? "They have one scale, as at least half of them fill a fifth of it."
    : "Each has a scale of its own, as on one for all more than half would fill less than a fifth.";
  document.getElementById("scale-rule").textContent = scale.checked === isReadable ? why : "";
}
document.getElementById("values").addEventListener("submit", (event) => event.preventDefault());
for (const button of document.querySelectorAll("[data-history]")) {
  button.addEventListener("click", button.dataset.history === "undo" ? undo : redo);
}
document.getElementById("download").addEventListener("click", download);
listeners.push(() => {
  if (!dialog.open) drawCards();
  drawMaps();
  listEdits();
  showPrediction();
  document.getElementById("downloaded").textContent = "";
});
dialog.addEventListener("close", () => drawCards());
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return; // a phone's bars come and go
  width = innerWidth;
  drawCards();
  if (open) buildLarge(open.bins);
});
addEventListener("beforeunload", (event) => {
  if (!isSaved()) event.preventDefault();
});
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details.ledger")) details.open = true;
  drawCards(...PRINTED);
});
addEventListener("afterprint", () => drawCards());
document.documentElement.classList.add("script");
if (CLASSES.length) {
  offerClasses(() => {
    isReadable = scale.checked = isOneScaleReadable(DATA.order);
    sayScale();
    drawCards();
    showPrediction();
  });
}
sayScale();
drawCards();
drawMaps();
listEdits();
showPrediction();
