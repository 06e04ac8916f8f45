"use strict";

// Theme: the reader's last choice, else the system's. file:// pages may have no storage.
const root = document.documentElement;
const themeButton = document.getElementById("theme");
function stored(value) {
  try {
    if (value === undefined) return localStorage.getItem("pagnn-bench-theme");
    localStorage.setItem("pagnn-bench-theme", value);
  } catch { /* then it is not remembered */ }
  return null;
}
function setTheme(theme) {
  root.dataset.theme = theme;
  themeButton.textContent = theme === "dark" ? "Light" : "Dark";
}
setTheme(stored() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
themeButton.addEventListener("click", () => {
  setTheme(root.dataset.theme === "dark" ? "light" : "dark");
  stored(root.dataset.theme);
});

// Sorting: numbers by data-value, texts by their text; what is empty always comes last.
const key = (cell) => "value" in cell.dataset
  ? (cell.dataset.value === "" ? null : Number(cell.dataset.value))
  : (cell.textContent.trim() || null);
function compare(a, b) {
  return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[column]), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return descending ? compare(b, a) : compare(a, b);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}

// Filters: each select holds what occurs in its column.
function filterRows(filters) {
  const body = document.getElementById("all").tBodies[0];
  const selects = [...filters.querySelectorAll("select")];
  for (const select of selects) {
    const texts = new Set([...body.rows].map((row) => row.cells[select.dataset.column].textContent.trim()));
    for (const text of texts) if (text) select.append(new Option(text, text));
  }
  function filter() {
    const word = document.getElementById("contains").value.trim().toLowerCase();
    const onlyRun = document.getElementById("only-run").checked;
    let shown = 0;
    for (const row of body.rows) {
      const fits = selects.every((select) => !select.value || row.cells[select.dataset.column].textContent.trim() === select.value)
        && (!word || row.textContent.toLowerCase().includes(word))
        && !(onlyRun && row.classList.contains("absent"));
      row.hidden = !fits;
      shown += fits;
    }
    document.getElementById("shown").textContent = `${shown} of ${body.rows.length} rows`;
  }
  filters.addEventListener("input", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
const filters = document.getElementById("filters"); // the page of `compare` has none
if (filters) filterRows(filters);

// Hover values: by mouse, finger or keyboard.
const tooltip = document.getElementById("tooltip");
function showTip(target) {
  tooltip.textContent = target.dataset.tip;
  tooltip.hidden = false;
  const mark = target.getBoundingClientRect();
  const box = tooltip.getBoundingClientRect();
  const left = Math.min(Math.max(8, mark.left + mark.width / 2 - box.width / 2), innerWidth - box.width - 8);
  const above = mark.top - box.height - 8;
  tooltip.style.left = `${left}px`;
  tooltip.style.top = `${above > 4 ? above : mark.bottom + 8}px`;
}
const tipOf = (event) => event.target instanceof Element && event.target.closest("[data-tip]");
for (const kind of ["mouseover", "focusin", "click"]) {
  document.addEventListener(kind, (event) => {
    const target = tipOf(event);
    if (target) showTip(target); else tooltip.hidden = true;
  });
}
document.addEventListener("scroll", () => { tooltip.hidden = true; }, { passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tooltip.hidden = true; });

// A printed page cannot be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details.claim").forEach((one) => { one.open = true; }));
