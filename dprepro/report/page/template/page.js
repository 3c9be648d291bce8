"use strict";
// Sorting, filtering, runs of cells, and files of what is shown. Tables and evidence need no script.
document.documentElement.classList.add("script");

document.addEventListener("DOMContentLoaded", async () => {
  const FILTERS = ["paper", "dataset", "method", "verdict"];
  const form = document.querySelector("form.filters");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  let isAllOpen = false;

  // Figures and the rows of long tables come packed: as HTML they would be ten times as large.
  async function unpack() {
    const packed = document.getElementById("packed").content.textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function fill(name, rows) {
    const sheet = document.getElementById(name);
    const heads = all("thead th", sheet);
    sheet.tBodies[0].append(...rows.map((entry, number) => makeRow(entry, number, heads, name)));
  }

  function draw(details) {
    for (const place of all("[data-figure]:empty", details)) {
      place.insertAdjacentHTML("afterbegin", packed.figures[places.indexOf(place)]);
    }
  }

  function makeRow(entry, number, heads, name) {
    const row = make("tr", "");
    if (name === "all-cells") {
      row.id = `cell-${number}`;
      row.tabIndex = -1;
    }
    entry.filters.forEach((value, k) => {
      if (value !== null) row.dataset[FILTERS[k]] = value;
    });
    entry.cells.forEach(([text, key, tone, link], k) => {
      const cell = make("td", "", { class: heads[k].className });
      if (key !== null) cell.dataset.key = key;
      if (k === 0 && entry.runs) {
        const button = make("button", text, { type: "button", class: "open", "aria-expanded": "false" });
        button.addEventListener("click", () => toggle(row, entry.runs));
        cell.append(button);
      } else if (link) cell.append(make("a", text, { href: `#${link}` }));
      else if (tone) cell.append(make("span", text, { class: `tone ${tone}` }));
      else write(cell, text);
      row.append(cell);
    });
    return row;
  }

  function toggle(row, runs, isOpen = !row.nextElementSibling?.matches(".detail")) {
    row.querySelector(".open").setAttribute("aria-expanded", String(isOpen));
    if (row.nextElementSibling?.matches(".detail")) row.nextElementSibling.remove();
    if (!isOpen) return;
    const inside = make("div", "");
    const facts = make("dl", "");
    for (const [name, text] of runs.facts) {
      const pair = make("div", "");
      pair.append(make("dt", name), make("dd", text));
      facts.append(pair);
    }
    const splits = make("ol", "", { "aria-label": `${runs.metric} by split` });
    for (const [split, value] of runs.splits) splits.append(make("li", `${split}: ${value}`));
    const command = make("p", "To repeat it: ");
    command.append(make("code", runs.command));
    inside.append(facts, make("p", `${runs.metric} by split:`), splits, command);
    const detail = make("tr", "", { class: "detail" });
    const cell = make("td", "", { colspan: String(row.cells.length) });
    cell.append(inside);
    detail.append(cell);
    row.after(detail);
  }

  // What is chosen stands in the address, so that a link shows the same.
  function remember() {
    const words = new URLSearchParams();
    for (const name of FILTERS) if (form.elements[name].value) words.set(name, form.elements[name].value);
    for (const head of all(".sheet thead th:not([aria-sort=none])")) {
      const name = `${head.closest("table").id}.${head.cellIndex}`;
      words.append("sort", `${name}.${head.getAttribute("aria-sort")}`);
    }
    if (isAllOpen) words.set("open", "all");
    const query = String(words);
    history.replaceState(null, "", location.pathname + (query ? `?${query}` : "") + location.hash);
  }

  function recall() {
    const words = new URLSearchParams(location.search);
    for (const name of FILTERS) {
      const wanted = words.get(name);
      if ([...form.elements[name].options].some((o) => o.value === wanted)) form.elements[name].value = wanted;
    }
    if (words.get("open") === "all") foldAll(false);
    for (const place of words.getAll("sort")) {
      const [sheet, column, order] = place.split(".");
      const table = document.getElementById(sheet);
      const head = table?.matches(".sheet") && table.tHead.rows[0].cells[Number(column)];
      if (head) sort(head.querySelector("button"), order === "descending" ? order : "ascending");
    }
  }

  function foldAll(isFolded) {
    isAllOpen = !isFolded;
    for (const details of all(".fold")) details.open = isAllOpen;
    if (isAllOpen) draw(document);
    form.elements.unfold.textContent = isAllOpen ? "Fold all" : "Open all";
  }

  function unfold(target) {
    for (let place = target; place; place = place.parentElement) if (place.matches("details")) place.open = true;
  }

  // A link into what is folded or filtered away shows it first.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    unfold(target);
    if (target.matches(".sheet")) target.closest("details").scrollIntoView();
    const number = /^cell-(\d+)$/.exec(target.id)?.[1];
    if (number === undefined) return;
    if (target.hidden) {
      for (const name of FILTERS) form.elements[name].value = "";
      filter();
      remember();
    }
    if (entries[number].runs) toggle(target, entries[number].runs, true);
    target.scrollIntoView({ block: "center" });
    target.focus({ preventScroll: true });
  }

  function shownCells() {
    const heads = all("#all-cells thead th").map((head) => head.textContent.trim());
    const rows = all("#all-cells tbody tr:not(.detail)").filter((row) => !row.hidden);
    return { heads, rows: rows.map((row) => [row, [...row.cells].map((cell) => cell.textContent.trim())]) };
  }

  function save(name, type, text) {
    const link = make("a", "", { download: name });
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function saveCsv() {
    const { heads, rows } = shownCells();
    const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [heads, ...rows.map(([, fields]) => fields)].map((fields) => fields.map(quote).join(","));
    save("cells.csv", "text/csv", `${lines.join("\r\n")}\r\n`);
  }

  function saveJson() {
    const { heads, rows } = shownCells();
    const cells = rows.map(([row, fields]) => ({
      ...Object.fromEntries(heads.map((head, k) => [head, fields[k]])),
      runs: entries[Number(row.id.slice(5))].runs,
    }));
    save("cells.json", "application/json", JSON.stringify(cells, null, 1));
  }

  function sort(button, wanted) {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    for (const row of all(".detail", body)) {
      row.previousElementSibling.querySelector(".open").setAttribute("aria-expanded", "false");
      row.remove();
    }
    const isNumber = head.classList.contains("number");
    const order = wanted ?? (head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
    for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...body.rows].map((row) => [sortKey(row, head.cellIndex, isNumber), row]);
    // Fields without a value come last either way.
    keyed.sort(([a], [b]) =>
      a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)
    );
    body.append(...keyed.map(([, row]) => row));
  }

  function passes(element, wanted, names = FILTERS) {
    return names.every((name) => {
      const value = element.dataset[name];
      return !wanted[name] || value === undefined || value === wanted[name];
    });
  }

  function filterLayout(layout, wanted) {
    const heads = all("thead th", layout);
    const columns = heads.map(
      ({ dataset: { method, twin } }) =>
        !wanted.method || method === undefined || [method, twin].includes(wanted.method)
    );
    heads.forEach((head, column) => (head.hidden = !columns[column]));
    let isEmpty = true;
    for (const body of layout.querySelector("table").tBodies) {
      let rows = 0;
      for (const row of [...body.rows].slice(1)) {
        let matches = 0;
        [...row.cells].forEach((cell, column) => {
          cell.hidden = !columns[column];
          if (column === 0 || cell.hidden) return;
          const isMatch = !wanted.verdict || cell.dataset.verdict === wanted.verdict;
          cell.classList.toggle("faded", !isMatch);
          matches += isMatch;
        });
        row.hidden = matches === 0;
        rows += !row.hidden;
      }
      body.hidden = rows === 0 || !passes(body, wanted, ["dataset"]);
      isEmpty &&= body.hidden;
    }
    const isOther = !passes(layout, wanted, ["paper"]);
    layout.hidden = isOther || !columns.slice(1).includes(true);
    if (Object.values(wanted).some(Boolean) && !isEmpty) unfold(layout.querySelector("details"));
    layout.querySelector(".scroll").hidden = isEmpty;
    layout.querySelector(".empty").hidden = !isEmpty;
  }

  function filterSheet(sheet, wanted) {
    for (const detail of all(".detail", sheet)) {
      detail.hidden = !passes(detail.previousElementSibling, wanted);
    }
    const rows = [...sheet.tBodies[0].rows].filter((row) => !row.matches(".detail"));
    for (const row of rows) row.hidden = !passes(row, wanted);
    const shown = rows.filter((row) => !row.hidden).length;
    const region = sheet.parentElement;
    region.hidden = shown === 0 && rows.length > 0;
    region.nextElementSibling.hidden = !region.hidden;
    const article = sheet.closest(".deviation");
    if (article) article.hidden = region.hidden;
    return [shown, rows.length];
  }

  function count(sheet, shown, total) {
    const own = sheet.querySelectorAll("tbody tr:not(.detail, [hidden])[data-verdict='not published']").length;
    const words = (number) => number.toLocaleString("en");
    const parts = own < total ? `: ${words(shown - own)} printed, ${words(own)} ours` : "";
    return `${words(shown)} of ${words(total)} cells${parts}`;
  }

  // One list to sort by, for narrow screens.
  function offerOrders(table) {
    const list = make("select", "");
    const buttons = all("thead button", table);
    list.append(make("option", "as listed", { value: "" }));
    buttons.forEach((button, k) => {
      for (const [arrow, order] of [["\u2191", "ascending"], ["\u2193", "descending"]]) {
        list.append(make("option", `${button.textContent} ${arrow}`, { value: `${k}.${order}` }));
      }
    });
    list.addEventListener("change", () => {
      const [column, order] = list.value.split(".");
      if (order) sort(buttons[Number(column)], order);
      remember();
    });
    const label = make("label", "Sort by ", { class: "sort-by" });
    label.append(list);
    table.parentElement.before(label);
  }

  function filter() {
    const wanted = Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value]));
    for (const other of all(".summary, figure")) other.hidden = !passes(other, wanted);
    for (const layout of all(".layout")) filterLayout(layout, wanted);
    for (const group of all(".group-of")) group.hidden = !group.querySelector(".layout:not([hidden])");
    for (const sheet of all("table.sheet")) {
      const [shown, total] = filterSheet(sheet, wanted);
      if (sheet.id === "all-cells") {
        form.querySelector("output").textContent = count(sheet, shown, total);
      }
    }
  }

  const release = holdLoad();
  const packed = await unpack().catch((fault) => {
    release();
    throw fault;
  });
  const entries = packed.sheets["all-cells"];
  const places = all("[data-figure]");
  for (const [name, rows] of Object.entries(packed.sheets)) fill(name, rows);
  for (const details of all("#figures details")) details.addEventListener("toggle", () => draw(details));
  for (const table of all("table.sheet")) {
    titleFields(table);
    if (table.tBodies[0].rows.length > 1) offerOrders(table);
  }
  measureFilters(form);
  window.addEventListener("beforeprint", () => {
    if (!isAllOpen) foldLongList();
    splitTables();
  });
  window.addEventListener("afterprint", () => {
    joinTables();
    reopenLongList();
  });

  for (const button of all(".sheet thead button")) {
    button.addEventListener("click", () => {
      sort(button);
      remember();
    });
  }
  form.addEventListener("change", () => {
    filter();
    remember();
  });
  for (const link of all("a[data-choose]")) {
    link.addEventListener("click", () => {
      for (const name of FILTERS) form.elements[name].value = link.dataset[name] ?? "";
      filter();
      remember();
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.reset.addEventListener("click", () => {
    for (const name of FILTERS) form.elements[name].value = "";
    filter();
    remember();
  });
  form.elements.unfold.addEventListener("click", () => {
    foldAll(isAllOpen);
    remember();
  });
  form.elements.csv.addEventListener("click", saveCsv);
  form.elements.json.addEventListener("click", saveJson);
  window.addEventListener("hashchange", reveal);
  recall();
  filter();
  reveal();
  document.documentElement.classList.add("ready");
  release();
});
