// One function as a picture: a small one for the overview, a large one to edit.
const GAP = 14; // between the numbers and the bin of missing values
const WIDE = 30; // the bin of missing values

// Where things are: margins, a column for each bin in the order of display, and the two scales.
function layoutOf(k, { width, height, isSmall, isEven }) {
  const labels = FEATURES[k].labels, order = displayOrder(k);
  const isOfNumbers = isNumeric(k);
  const size = isSmall ? 11 : 12, room = isSmall ? 64 : 120;
  const isNamed = !isOfNumbers && (!isSmall || labels.length <= 16);
  const names = isOfNumbers ? [] : labels.map((_, bin) => fitted(binName(k, bin), size, room));
  const longest = Math.max(0, ...names.map((name) => textWidth(name, size)));
  const frame = {
    left: isSmall ? 38 : 52,
    right: width - 8,
    top: 8,
    strip: isSmall ? 14 : 32,
    below: isNamed ? longest + 12 : 22,
  };
  frame.bottom = height - frame.below - frame.strip - 4;
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
        svg("rect", { class: "selected", x: from, width: Math.max(to - from, 1), y: frame.top, height: frame.bottom - frame.top + 4 + frame.strip })
      );

  const levels = () =>
    ticks(lower, upper, isSmall ? 5 : 7).flatMap((value) => [
      svg("line", { class: value === 0 ? "zero" : "level", x1: frame.left, x2: frame.right, y1: y(value), y2: y(value) }),
      svg("text", { x: frame.left - 6, y: y(value), "text-anchor": "end", dy: ".32em" }, tick(value)),
    ]);

  // Rows per unit of a number on its own scale, else rows per bin.
  function density() {
    const heights = columns.map(({ bin, from, to }) => {
      const isOne = !layout.isByValue || bin >= orderedBins(k);
      return shareOf(k, bin) / (isOne ? 1 : Math.max(to - from, 0.5));
    });
    // Missing values have no width; beside numbers their bar is a share of all rows.
    const ordinary = heights.filter((_, i) => !(layout.isByValue && columns[i].bin >= orderedBins(k)));
    const most = Math.max(...ordinary) || 1;
    const floor = frame.bottom + 4 + frame.strip;
    return columns.map(({ bin, from, to }, i) => {
      const part = layout.isByValue && bin >= orderedBins(k) ? heights[i] : heights[i] / most;
      return svg("rect", { class: "density", x: from, width: Math.max(to - from - (isNumeric(k) ? 0 : 2), 0.5), y: floor - part * frame.strip, height: part * frame.strip });
    });
  }

  function axis() {
    const floor = frame.bottom + 4 + frame.strip;
    const line = svg("line", { class: "axis", x1: frame.left, x2: layout.end, y1: floor, y2: floor });
    return [line, ...(isNumeric(k) ? numbersBelow(floor) : namesBelow(floor))];
  }

  function numbersBelow(floor) {
    const edges = edgesOf(k), n = orderedBins(k);
    const widest = Math.max(...[edges[0], edges.at(-1)].map((edge) => textWidth(tick(edge), isSmall ? 11 : 12)));
    const room = Math.max(2, Math.floor((layout.end - frame.left) / (widest + 16)));
    const places = layout.isByValue
      ? ticks(edges[0], edges.at(-1), room).map((value) => [layout.x(value), value])
      : [...new Set(range(0, room).map((i) => Math.round((i * n) / room)))].map((i) => [layout.x(i), edges[i]]);
    const found = places.map(([at, value], i) => {
      const isEnd = i === places.length - 1 && at > layout.end - 20 && !layout.hasMissing;
      return svg("text", { x: at, y: floor + 15, "text-anchor": isEnd ? "end" : at < frame.left + 8 ? "start" : "middle" }, tick(value));
    });
    if (!layout.hasMissing) return found;
    const { from, to } = columns.at(-1);
    const name = svg("text", { class: "missing", x: frame.right, y: floor + 15, "text-anchor": "end" }, "missing");
    return [...found.filter((text) => Number(text.getAttribute("x")) < from - 34), svg("line", { class: "axis", x1: from, x2: to, y1: floor, y2: floor }), name];
  }

  function namesBelow(floor) {
    if (!layout.isNamed) {
      const middle = (frame.left + layout.end) / 2;
      return [svg("text", { x: middle, y: floor + 15, "text-anchor": "middle" }, `${columns.length} bins of categories`)];
    }
    return columns.map(({ bin, from, to }) => {
      const place = `translate(${(from + to) / 2} ${floor + 6}) rotate(-90)`;
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

  function steps() {
    const released = releasedOf(k), found = [];
    if (FEATURES[k].noise !== null) {
      const band = (sign) =>
        ofOrdinary((bin) => valueOf(released, bin) + sign * DEVIATIONS * noiseOf(k, bin));
      found.push(svg("path", { class: "band", d: `M ${stairs(band(1))} L ${stairs(band(-1), true)} Z` }));
    }
    if (isEdited(k)) {
      found.push(svg("path", { class: "released", d: `M ${stairs(ofOrdinary((bin) => valueOf(released, bin)))}` }));
    }
    found.push(svg("path", { class: "function", d: `M ${stairs(ofOrdinary((bin) => valueOf(functions[k], bin)))}` }));
    return layout.hasMissing ? [...found, ...pointOf(columns.at(-1))] : found;
  }

  function pointOf({ bin, from, to }) {
    const at = (from + to) / 2;
    return [...whisker(bin, at), ...before(bin, from, to), svg("circle", { class: "point", cx: at, cy: y(valueOf(functions[k], bin)), r: isSmall ? 3 : 4.5 })];
  }

  function bars() {
    return columns.flatMap(({ bin, from, to }) => {
      const value = valueOf(functions[k], bin), wide = Math.min(to - from, 60) * 0.7, at = (from + to) / 2;
      const [top, foot] = [y(Math.max(value, 0)), y(Math.min(value, 0))];
      return [
        svg("rect", { class: "bar-of", x: at - wide / 2, width: wide, y: top, height: Math.max(foot - top, 1) }),
        ...before(bin, at - wide / 2 - 2, at + wide / 2 + 2),
        ...whisker(bin, at),
      ];
    });
  }

  function before(bin, from, to) {
    const released = valueOf(releasedOf(k), bin);
    if (released === valueOf(functions[k], bin)) return [];
    return [svg("line", { class: "released", x1: from, x2: to, y1: y(released), y2: y(released) })];
  }

  function whisker(bin, at) {
    const noise = noiseOf(k, bin), released = valueOf(releasedOf(k), bin);
    if (noise === null) return [];
    const [top, foot] = [1, -1].map((sign) => clipped(released + sign * DEVIATIONS * noise));
    const cap = isSmall ? 2 : 4;
    return [svg("path", { class: "whisker", d: `M ${at - cap} ${top} h ${2 * cap} m ${-cap} 0 V ${foot} m ${-cap} 0 h ${2 * cap}` })];
  }

  return { root, draw, layout, perPixel: () => (upper - lower) / (frame.bottom - frame.top) };
}
