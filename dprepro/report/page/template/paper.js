// What paper needs: what is open, before it is printed, and no table wider than a sheet.
// Programs that print without a window print at `load`, which waits for a frame that is open.
function holdLoad() {
  const frame = document.createElement("iframe");
  frame.hidden = true;
  document.body.append(frame);
  frame.contentDocument.open();
  return () => {
    frame.contentDocument.close();
    frame.remove();
  };
}

// The list of all cells is open on a screen, where it scrolls. On paper it would fill dozens of sheets.
const MOST_ROWS = 200;

function foldLongList() {
  const fold = document.querySelector("#cells .fold");
  const rows = fold.querySelectorAll("tbody tr:not([hidden])").length;
  fold.classList.toggle("reopen", fold.open && rows > MOST_ROWS);
  if (fold.matches(".reopen")) fold.open = false;
}

function reopenLongList() {
  const fold = document.querySelector("#cells .fold.reopen");
  if (!fold) return;
  fold.classList.remove("reopen");
  fold.open = true;
}

// On paper nothing scrolls: a wide table is continued below itself.
const MOST_COLUMNS = 9;

function splitTables() {
  for (const table of document.querySelectorAll(".layout table")) {
    const columns = [...table.tHead.rows[0].cells].map((head, k) => (head.hidden ? 0 : k)).filter((k) => k > 0);
    if (columns.length <= MOST_COLUMNS) continue;
    const each = Math.ceil(columns.length / Math.ceil(columns.length / MOST_COLUMNS));
    for (let start = 0; start < columns.length; start += each) {
      const part = table.cloneNode(true);
      part.classList.add("part");
      const kept = [0, ...columns.slice(start, start + each)];
      for (const row of part.rows) {
        if (row.cells.length === 1) row.cells[0].colSpan = kept.length;
        else [...row.cells].forEach((cell, k) => kept.includes(k) || cell.remove());
      }
      table.before(part);
    }
    table.hidden = true;
  }
}

function joinTables() {
  for (const part of document.querySelectorAll(".part")) {
    if (!part.nextElementSibling.matches(".part")) part.nextElementSibling.hidden = false;
    part.remove();
  }
}
