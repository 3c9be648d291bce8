// Elements, the order of rows, and what narrow and low screens need.
function make(tag, text, names = {}) {
  const element = document.createElement(tag);
  element.textContent = text ?? "";
  for (const [name, value] of Object.entries(names)) element.setAttribute(name, value);
  return element;
}

// Text, with what stands between backticks as code.
function write(element, text) {
  text.split("`").forEach((part, k, parts) => {
    const isCode = k % 2 === 1 && k < parts.length - 1;
    element.append(isCode ? make("code", part) : k % 2 === 1 ? `\`${part}` : part);
  });
}

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

// On a narrow screen each row is a card, and each field says its title.
function titleFields(table) {
  const titles = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, k) => (cell.dataset.title = titles[k]));
  }
}

// Headings and targets stand below the filters, where these stay on top.
function measureFilters(form) {
  const measure = () => {
    const isSticky = getComputedStyle(form).position === "sticky";
    document.documentElement.style.setProperty("--filters", isSticky ? `${form.offsetHeight}px` : "0px");
  };
  new ResizeObserver(measure).observe(form);
  measure();
}
