// A large chart under mouse, finger and keyboard: which bins are selected, and moving them.
const SLOP = 4; // pixels after which a press is a drag

// `on` is told of what the reader does: select(bins), move(bins, byWholes, gesture), undo(), redo().
function makePointable(k, picture, on) {
  const { columns, frame } = picture.layout;
  const hits = svg("g", { role: "group", "aria-label": `Bins of ${nameOf(k)}` });
  const cells = columns.map(({ bin, from, to }, place) => {
    const cell = svg("rect", {
      class: "hit", role: CLASSES.length ? "img" : "slider", tabindex: -1,
      "aria-orientation": CLASSES.length ? null : "vertical", "data-bin": bin,
      x: from, width: Math.max(to - from, 0.5), y: frame.top, height: frame.floor - frame.top,
    });
    cell.append(svg("title"));
    cell.addEventListener("keydown", (event) => press(event, place));
    cell.addEventListener("focus", () => selected.includes(place) || select(place, place));
    return cell;
  });
  hits.append(...cells);
  picture.root.append(hits);
  let anchor = 0, head = 0, selected = [], gestures = 0;

  const isAlone = (place) => isNumeric(k) && columns[place].bin >= orderedBins(k);

  // From one place to another in the order of display; the bin of missing values stands alone.
  function select(from, to) {
    if (from !== to && (isAlone(from) || isAlone(to))) to = isAlone(from) ? from : to - 1;
    [anchor, head] = [from, to];
    selected = range(Math.min(from, to), Math.max(from, to));
    cells.forEach((cell, place) => cell.setAttribute("tabindex", place === head ? 0 : -1));
    on.select(selected.map((place) => columns[place].bin));
  }

  function go(place, isExtending) {
    const next = Math.min(Math.max(place, 0), columns.length - 1);
    select(isExtending ? anchor : next, next);
    cells[head].focus();
  }

  function press(event, place) {
    const step = wholesOf(niceStep(picture.perPixel() * (frame.bottom - frame.top) / 100));
    const size = event.shiftKey || event.key.startsWith("Page") ? 10 : 1;
    const keys = {
      ArrowUp: () => move(step * size), ArrowDown: () => move(-step * size),
      PageUp: () => move(step * size), PageDown: () => move(-step * size),
      ArrowLeft: () => go(place - 1, event.shiftKey), ArrowRight: () => go(place + 1, event.shiftKey),
      Home: () => go(0, event.shiftKey), End: () => go(columns.length - 1, event.shiftKey),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  const bins = () => selected.map((place) => columns[place].bin);
  const wholesOf = (size) => Math.max(1, Math.round(size / UNIT));
  const move = (wholes) => on.move(bins(), wholes, `keys ${k} ${bins()}`);

  function placeAt(clientX) {
    const box = picture.root.getBoundingClientRect();
    const x = ((clientX - box.left) * picture.root.viewBox.baseVal.width) / box.width;
    const found = columns.findIndex(({ to }) => x < to);
    return found < 0 ? columns.length - 1 : found;
  }

  // Up or down moves what is selected, sideways selects: whichever the pointer does first.
  function grab(event) {
    const cell = event.target.closest(".hit");
    if (!cell || event.button !== 0) return;
    event.preventDefault();
    const place = cells.indexOf(cell), start = { x: event.clientX, y: event.clientY };
    if (event.shiftKey) return go(place, true);
    const wasSelected = selected.includes(place);
    let mode = "";
    const perPixel = picture.perPixel() / UNIT, gesture = `drag ${k} ${++gestures}`;
    let moved = 0;
    const drag = (next) => {
      const [dx, dy] = [next.clientX - start.x, next.clientY - start.y];
      if (!mode && Math.max(Math.abs(dx), Math.abs(dy)) >= SLOP) {
        mode = Math.abs(dx) > Math.abs(dy) ? "select" : "move";
        if (mode === "select" || !wasSelected) go(place, false);
      }
      if (mode === "select") select(place, placeAt(next.clientX));
      if (mode !== "move") return;
      const wholes = Math.round(-dy * perPixel);
      on.move(bins(), wholes - moved, gesture);
      moved = wholes;
    };
    const release = () => {
      picture.root.removeEventListener("pointermove", drag);
      if (!mode) go(place, false);
      else cells[head].focus();
    };
    picture.root.setPointerCapture(event.pointerId);
    picture.root.addEventListener("pointermove", drag);
    picture.root.addEventListener("pointerup", release, { once: true });
    picture.root.addEventListener("pointercancel", release, { once: true });
  }
  picture.root.addEventListener("pointerdown", grab);

  // What assistive software says of each bin.
  function describe() {
    cells.forEach((cell, place) => {
      const { bin } = columns[place], value = functions[k][bin] * UNIT;
      if (CLASSES.length) {
        const text = `${binName(k, bin)}: ${inClasses(k, bin)}`;
        cell.setAttribute("aria-label", text);
        cell.firstChild.textContent = text;
        return;
      }
      cell.setAttribute("aria-label", binName(k, bin));
      const [lowest, highest] = picture.limits();
      cell.setAttribute("aria-valuemin", lowest);
      cell.setAttribute("aria-valuemax", highest);
      cell.setAttribute("aria-valuenow", value);
      cell.setAttribute("aria-valuetext", `${signed(value)} ${DATA.axis}${IS_COUNT ? `, ${factor(value)}` : ""}`);
      cell.firstChild.textContent = `${binName(k, bin)}: ${withFactor(value)}`;
    });
  }

  const focus = () => cells[head].focus({ preventScroll: true });

  const placeOf = (bin) => columns.findIndex((column) => column.bin === bin);

  return { describe, select, focus, placeOf };
}
