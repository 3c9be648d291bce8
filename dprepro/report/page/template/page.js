"use strict";
// Sorting and filtering. Without this script the page shows everything.
document.documentElement.classList.add("script");

document.addEventListener("DOMContentLoaded", () => {
  const FILTERS = ["paper", "dataset", "method", "verdict"];
  const form = document.querySelector("form.filters");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function sortKey(row, column, isNumber) {
    const cell = row.cells[column];
    const text = cell.dataset.key ?? cell.textContent.trim();
    if (text === "") return null;
    if (!isNumber) return text;
    const number = text === "inf" ? Infinity : parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? null : number;
  }

  function compare(a, b) {
    if (typeof a === "number") return a === b ? 0 : a - b;
    return a.localeCompare(b, "en", { numeric: true });
  }

  function sort(button) {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const isNumber = head.classList.contains("number");
    const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
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
    layout.querySelector(".scroll").hidden = isEmpty;
    layout.querySelector(".empty").hidden = !isEmpty;
  }

  function filterSheet(sheet, wanted) {
    const rows = [...sheet.tBodies[0].rows];
    for (const row of rows) row.hidden = !passes(row, wanted);
    const shown = rows.filter((row) => !row.hidden).length;
    const region = sheet.parentElement;
    region.hidden = shown === 0 && rows.length > 0;
    region.nextElementSibling.hidden = !region.hidden;
    const article = sheet.closest(".deviation");
    if (article) article.hidden = region.hidden;
    return [shown, rows.length];
  }

  function filter() {
    const wanted = Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value]));
    for (const other of all(".summary, figure")) other.hidden = !passes(other, wanted);
    for (const layout of all(".layout")) filterLayout(layout, wanted);
    for (const sheet of all("table.sheet")) {
      const [shown, total] = filterSheet(sheet, wanted);
      if (sheet.id === "all-cells") {
        form.querySelector("output").textContent = `${shown} of ${total} cells`;
      }
    }
  }

  for (const button of all(".sheet thead button")) {
    button.addEventListener("click", () => sort(button));
  }
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").addEventListener("click", () => {
    form.reset();
    filter();
  });
  filter();
});
