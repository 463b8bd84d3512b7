"use strict";

// Tables: a click on a heading sorts; a search box hides rows; a button copies.
const SHOWN_FIRST = new Map();

function valueOf(row, place) {
  const cell = row.cells[place];
  const text = "value" in cell.dataset ? cell.dataset.value : cell.textContent;
  if (text === "" || text === "–") return null;
  const number = Number(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

function sort(table, place, order) {
  const body = table.tBodies[0];
  if (!SHOWN_FIRST.has(table)) SHOWN_FIRST.set(table, [...body.rows]);
  const rows = [...SHOWN_FIRST.get(table)];
  if (order !== "none") {
    const sign = order === "ascending" ? 1 : -1;
    const known = rows.map((row) => [valueOf(row, place), row]);
    known.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);  // what is missing goes last
      return sign * compare(a, b);
    });
    rows.splice(0, rows.length, ...known.map(([, row]) => row));
  }
  body.append(...rows);
  table.classList.toggle("sorted", order !== "none");
  [...table.tHead.rows[0].cells].forEach((cell, number) => {
    if (number === place && order !== "none") cell.setAttribute("aria-sort", order);
    else cell.removeAttribute("aria-sort");
  });
}

function nextOrder(heading) {
  const orders = heading.classList.contains("number")
    ? ["none", "descending", "ascending"] : ["none", "ascending", "descending"];
  const now = heading.getAttribute("aria-sort") || "none";
  return orders[(orders.indexOf(now) + 1) % orders.length];
}

// The second column of a grouped table stays in place beside the first one.
function pin() {
  for (const table of document.querySelectorAll("table.grouped")) {
    table.style.setProperty("--first", `${table.rows[0].cells[0].offsetWidth}px`);
  }
}
pin();
addEventListener("resize", pin);

for (const block of document.querySelectorAll("section.table")) {
  const table = block.querySelector("table");
  [...table.tHead.rows[0].cells].forEach((heading, place) => {
    heading.querySelector("button").addEventListener("click", () => sort(table, place, nextOrder(heading)));
  });
  block.querySelector(".search")?.addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = [...row.cells].map((cell) => cell.textContent.toLowerCase()).join("\t");
      row.hidden = !wanted.every((part) => text.includes(part));
    }
  });
  block.querySelector(".copy").addEventListener("click", async (event) => {
    const rows = [...table.rows].filter((row) => !row.hidden);
    const text = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join("\t")).join("\n");
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "No access";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// Figures: what is under the pointer is described, and shown in all panels.
const tip = document.getElementById("tip");
const NEAR = 14;

for (const drawing of document.querySelectorAll(".drawing")) {
  const marks = JSON.parse(drawing.querySelector(".marks").textContent);
  let described = null;
  const forget = () => {
    drawing.querySelectorAll(".ring").forEach((ring) => ring.remove());
    tip.hidden = true;
    described = null;
  };
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    let best = null, least = NEAR * NEAR;
    for (const mark of marks) {
      for (let i = 1; i < mark.length; i += 2) {
        const x = mark[i] * box.width - (event.clientX - box.left);
        const y = mark[i + 1] * box.height - (event.clientY - box.top);
        if (x * x + y * y < least) { least = x * x + y * y; best = mark; }
      }
    }
    if (best === null) { forget(); return; }
    if (best !== described) {
      forget();
      described = best;
      for (let i = 1; i < best.length; i += 2) {
        const ring = document.createElement("span");
        ring.className = "ring";
        ring.style.left = `${100 * best[i]}%`;
        ring.style.top = `${100 * best[i + 1]}%`;
        drawing.append(ring);
      }
      tip.textContent = best[0];
      tip.hidden = false;
    }
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${event.clientY > 60 ? event.clientY - 38 : event.clientY + 20}px`;
  });
  drawing.addEventListener("pointerleave", forget);
}

// Light and dark: as the system has it, or as the reader wants it.
const theme = document.getElementById("theme");
const THEMES = { "": "as the system", light: "light", dark: "dark" };
let chosen = "";
try { chosen = localStorage.getItem("bilex-theme") || ""; } catch { /* pages from files may not remember */ }

function show(name) {
  chosen = name in THEMES ? name : "";
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  theme.textContent = `Theme: ${THEMES[chosen]}`;
}
theme.hidden = false;
theme.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  show(names[(names.indexOf(chosen) + 1) % names.length]);
  try { localStorage.setItem("bilex-theme", chosen); } catch { /* likewise */ }
});
show(chosen);

// Contents: folded on narrow pages; the part that is being read stands out.
const contents = document.getElementById("contents");
if (window.matchMedia("(max-width: 1000px)").matches) contents.open = false;
const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
const inView = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) inView.add(entry.target.id);
    else inView.delete(entry.target.id);
  }
  const here = [...links.keys()].find((name) => inView.has(name));
  links.forEach((link, name) => link.classList.toggle("here", name === here));
}, { rootMargin: "0px 0px -65% 0px" });
document.querySelectorAll("section.part").forEach((part) => watcher.observe(part));

function unfold() {
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details")?.setAttribute("open", "");
}
window.addEventListener("hashchange", unfold);
unfold();
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
});

for (const button of document.querySelectorAll(".download")) {
  button.addEventListener("click", () => {
    const text = JSON.stringify(JSON.parse(document.getElementById(button.dataset.block).textContent), null, 2);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = button.textContent;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
