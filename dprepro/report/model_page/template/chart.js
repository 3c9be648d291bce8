// One function as a picture: a small one for the overview, a large one to edit.
const GAP = 14; // between the numbers and the bin of missing values
const WIDE = 30; // the bin of missing values

// Where things are: margins, a column for each bin in the order of display, and the two scales.
function layoutOf(k, { width, height, isSmall, isEven }) {
  const labels = FEATURES[k].labels, order = displayOrder(k);
  const isOfNumbers = isNumeric(k);
  const size = isSmall ? 11 : 12, room = isSmall ? 88 : 120;
  const isNamed = !isOfNumbers && (!isSmall || labels.length <= 16);
  const names = isOfNumbers ? [] : distinct(labels.map((_, bin) => binName(k, bin)), size, room);
  const longest = Math.max(0, ...names.map((name) => textWidth(name, size)));
  const frame = {
    left: isSmall ? 38 : 52,
    right: width - 8,
    top: 8,
    strip: isSmall ? 14 : 32,
    below: isNamed ? longest + 12 : 22,
  };
  frame.floor = height - frame.below; // of the density; the function ends above it
  frame.bottom = frame.floor - frame.strip - 4;
  const missing = missingBin(k), n = orderedBins(k);
  const hasMissing = isOfNumbers && missing >= 0;
  const end = frame.right - (hasMissing ? GAP + WIDE : 0);
  const isByValue = isOfNumbers && !isEven && hasRoom(k);
  const edges = isByValue ? edgesOf(k) : range(0, isOfNumbers ? n : labels.length);
  const x = (place) =>
    frame.left + ((place - edges[0]) / (edges.at(-1) - edges[0] || 1)) * (end - frame.left);
  const columns = order.map((bin, place) =>
    hasMissing && bin === missing
      ? { bin, from: end + GAP, to: frame.right }
      : { bin, from: x(edges[place]), to: x(edges[place + 1]) }
  );
  return { frame, columns, x, end, isByValue, hasMissing, isNamed, names };
}

function chart(k, options) {
  const { width, height, isSmall } = options;
  const layout = layoutOf(k, options), { frame, columns } = layout;
  const drawn = svg("g");
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, drawn);
  let [lower, upper] = [0, 1];
  const y = (value) =>
    frame.top + ((upper - value) / (upper - lower)) * (frame.bottom - frame.top);
  // A band that dwarfs its function ends where the picture does.
  const clipped = (value) => Math.min(Math.max(y(value), frame.top), frame.bottom);

  function draw(limits, selected = []) {
    const margin = 0.06 * (limits[1] - limits[0]);
    [lower, upper] = [limits[0] - margin, limits[1] + margin];
    drawn.replaceChildren(
      ...selection(selected),
      ...levels(),
      ...density(),
      ...axis(),
      ...(isNumeric(k) ? steps() : bars()),
    );
  }

  const selection = (selected) =>
    columns
      .filter(({ bin }) => selected.includes(bin))
      .map(({ from, to }) =>
        boxOf("selected", from, frame.top, Math.max(to - from, 1), frame.floor - frame.top)
      );

  const levels = () =>
    ticks(lower, upper, isSmall ? 5 : 7).flatMap((value) => [
      lineOf(value === 0 ? "zero" : "level", frame.left, frame.right, y(value)),
      textOf(frame.left - 6, y(value) + 4, "end", tick(value)),
    ]);

  // Rows per unit of a number on its own scale, else rows per bin.
  function density() {
    // Missing values have no width; beside numbers by value their bar is a share of all rows.
    const isShare = ({ bin }) => layout.isByValue && bin >= orderedBins(k);
    const densityOf = ({ bin, from, to }) =>
      shareOf(k, bin) / (layout.isByValue ? Math.max(to - from, 0.5) : 1);
    const most = Math.max(...columns.filter((column) => !isShare(column)).map(densityOf)) || 1;
    return columns.map((column) => {
      const { bin, from, to } = column, between = isNumeric(k) ? 0 : 2;
      const part = isShare(column) ? shareOf(k, bin) : densityOf(column) / most;
      const height = part * frame.strip;
      return boxOf("density", from, frame.floor - height, Math.max(to - from - between, 0.5), height);
    });
  }

  function axis() {
    const line = lineOf("axis", frame.left, layout.end, frame.floor);
    return [line, ...(isNumeric(k) ? numbersBelow() : namesBelow())];
  }

  function numbersBelow() {
    const edges = edgesOf(k), ends = [edges[0], edges.at(-1)].map(tick);
    const longest = Math.max(...ends.map((end) => textWidth(end, isSmall ? 11 : 12)));
    const room = Math.max(2, Math.floor((layout.end - frame.left) / (longest + 16)));
    const places = layout.isByValue ? placesByValue(edges, room) : placesOfEdges(edges, room);
    const { from, to } = columns.at(-1);
    const found = places
      .filter(([at]) => !layout.hasMissing || at < from - 34)
      .map(([at, value]) => {
        const anchor = at > frame.right - 20 ? "end" : at < frame.left + 8 ? "start" : "middle";
        return textOf(at, frame.floor + 15, anchor, tick(value));
      });
    if (!layout.hasMissing) return found;
    const name = textOf(frame.right, frame.floor + 15, "end", "missing");
    return [...found, lineOf("axis", from, to, frame.floor), name];
  }

  const placesByValue = (edges, room) =>
    ticks(edges[0], edges.at(-1), room).map((value) => [layout.x(value), value]);

  function placesOfEdges(edges, room) {
    const chosen = range(0, room).map((i) => Math.round((i * orderedBins(k)) / room));
    return [...new Set(chosen)].map((i) => [layout.x(i), edges[i]]);
  }

  function namesBelow() {
    if (!layout.isNamed) {
      const middle = (frame.left + layout.end) / 2;
      return [textOf(middle, frame.floor + 15, "middle", `${columns.length} bins of categories`)];
    }
    return columns.map(({ bin, from, to }) => {
      const place = `translate(${(from + to) / 2} ${frame.floor + 6}) rotate(-90)`;
      return svg("text", { transform: place, "text-anchor": "end", dy: ".32em" }, layout.names[bin]);
    });
  }

  const valueOf = (list, bin) => list[bin] * UNIT;
  const ordinary = columns.filter(({ bin }) => !layout.hasMissing || bin !== missingBin(k));

  const stairs = (list, isBack = false) => {
    const parts = ordinary.map(({ from, to }, i) => [[from, list[i]], [to, list[i]]]);
    const points = isBack ? parts.reverse().flatMap((ends) => ends.reverse()) : parts.flat();
    return points.map(([at, value]) => `${at.toFixed(2)},${clipped(value).toFixed(2)}`).join(" L ");
  };
  const ofOrdinary = (pick) => ordinary.map(({ bin }) => pick(bin));
  const path = (kind, d) => svg("path", { class: kind, d });
  const pathOf = (kind, list) => path(kind, `M ${stairs(ofOrdinary((bin) => valueOf(list, bin)))}`);

  function steps() {
    const [released] = seriesOf(releasedOf(k)), found = [];
    if (noiseOf(k, 0) !== null) {
      const end = (sign) =>
        ofOrdinary((bin) => valueOf(released, bin) + sign * DEVIATIONS * noiseOf(k, bin));
      found.push(path(`band ${lookOf(0)}`, `M ${stairs(end(1))} L ${stairs(end(-1), true)} Z`));
    }
    if (isEdited(k)) found.push(pathOf("released", released));
    const now = seriesOf(functions[k]);
    found.push(...now.map((list, i) => pathOf(`function ${lookOf(i)}`, list)));
    return layout.hasMissing ? [...found, ...pointsOf(columns.at(-1), now)] : found;
  }

  function pointsOf({ bin, from, to }, lists) {
    return lists.flatMap((list, i) => {
      const cx = from + ((i + 0.5) * (to - from)) / lists.length, cy = y(valueOf(list, bin));
      const point = svg("circle", { class: `point ${lookOf(i)}`, cx, cy, r: isSmall ? 3 : 4.5 });
      return [...whisker(bin, cx), ...before(bin, from, to), point];
    });
  }

  // A bar, or for several classes a group of bars beside each other.
  function bars() {
    const lists = seriesOf(functions[k]), n = lists.length;
    return columns.flatMap(({ bin, from, to }) => {
      const group = Math.min(to - from, 60 * n) * (n > 1 ? 0.85 : 0.7), wide = group / n;
      return lists.flatMap((list, i) => {
        const value = valueOf(list, bin), at = (from + to - group + wide) / 2 + i * wide;
        const [top, foot] = [y(Math.max(value, 0)), y(Math.min(value, 0))];
        return [
          boxOf(`bar-of ${lookOf(i)}`, at - wide / 2, top, wide, Math.max(foot - top, 1)),
          ...before(bin, at - wide / 2 - 2, at + wide / 2 + 2),
          ...whisker(bin, at),
        ];
      });
    });
  }

  function before(bin, from, to) {
    if (!isEdited(k)) return [];
    const released = valueOf(releasedOf(k), bin);
    if (released === valueOf(functions[k], bin)) return [];
    return [lineOf("released", from, to, y(released))];
  }

  function whisker(bin, at) {
    const noise = noiseOf(k, bin), released = valueOf(seriesOf(releasedOf(k))[0], bin);
    if (noise === null) return [];
    const cap = isSmall ? 2 : 4, ends = [1, -1].map((sign) => {
      const value = released + sign * DEVIATIONS * noise, end = clipped(value);
      const isCut = end !== y(value), back = isCut ? end + sign * cap : end; // an arrow, or a bar
      return { end, isCut, tip: `M ${at - cap} ${back} L ${at} ${end} L ${at + cap} ${back}` };
    });
    const [top, foot] = ends, kind = top.isCut || foot.isCut ? "whisker cut" : "whisker";
    return [path(kind, `${top.tip} M ${at} ${top.end} V ${foot.end} ${foot.tip}`)];
  }

  const perPixel = () => (upper - lower) / (frame.bottom - frame.top);
  return { root, draw, layout, perPixel, limits: () => [lower, upper] };
}
