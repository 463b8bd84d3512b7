// A table of any length: only the rows in sight exist, and pages of rows are fetched as they come into sight.

import { el } from "./dom.js";

const PAGE = 100;
const KEPT_PAGES = 60;
const BEYOND = 6;
const PAUSE_MS = 30;
// Browsers stop at some 17 to 33 million pixels; beyond this height, scrolling is proportional.
const TALLEST = 12_000_000;

/** A grid that scrolls over `total` rows. */
export class VirtualTable {
  /**
   * @param {object} given
   *   label: name for screen readers; rowHeight: pixels; fetchPage: async (offset, limit, signal) => {total, rows};
   *   columns: [{name, heading, cell: (row) => node, sort, number}]; sort: {key, falling}; onsort: (key) => void;
   *   onopen: (row, index) => void; ontotal: (total) => void; onerror: (error) => void;
   *   hasForms: (row) => whether rows unfold under it; fetchForms: async (row) => these rows; onselect: (row) => void; selected: (row) => boolean
   */
  constructor(given) {
    Object.assign(this, given);
    this.pages = new Map();
    this.fetching = new Map();
    this.rows = new Map();
    this.total = 0;
    this.unfolded = [];
    this.active = 0;
    this.generation = 0;
    this.head = el("div", { role: "row", class: "grid-row grid-head", "aria-rowindex": "1" });
    this.body = el("div", { class: "grid-body", role: "rowgroup" });
    this.scroller = el("div", { class: "grid-scroll", role: "presentation" }, this.body);
    this.element = el("div", { class: "grid", role: this.hasForms ? "treegrid" : "grid", tabindex: "0", "aria-label": this.label, "aria-readonly": "true" }, el("div", { role: "rowgroup" }, this.head), this.scroller);
    this.scroller.addEventListener("scroll", () => this.scrolled());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.scroller);
    this.drawHead();
  }

  /** Stops everything that runs for this table. */
  stop() {
    this.sizes.disconnect();
    this.fetching.forEach((control) => control.abort());
  }

  setColumns(columns) {
    this.columns = columns;
    this.drawHead();
    this.body.replaceChildren();
    this.rows.clear();
    this.draw();
  }

  drawHead() {
    this.element.style.setProperty("--columns", this.columns.map(({ width }) => width ?? "minmax(0, 1fr)").join(" "));
    this.element.setAttribute("aria-colcount", this.columns.length);
    this.head.replaceChildren(...this.columns.map((column) => {
      const sorted = this.sort?.key === column.sort && column.sort;
      const heading = column.sort
        ? el("button", { type: "button", class: "sort", onclick: () => this.onsort(column.sort) }, column.heading, el("span", { "aria-hidden": "true" }, sorted ? (this.sort.falling ? " ↓" : " ↑") : ""))
        : column.narrow ? el("span", { class: "hidden-text" }, column.heading) : column.heading;
      return el("div", { role: "columnheader", class: `cell ${column.name}${column.number ? " number" : ""}`, "aria-sort": sorted ? (this.sort.falling ? "descending" : "ascending") : null }, heading);
    }));
  }

  /** Forgets all rows and fetches what is in sight again; `keepPlace` stays where the reader is. */
  async reload({ keepPlace = false } = {}) {
    this.generation += 1;
    this.fetching.forEach((control) => control.abort());
    this.fetching.clear();
    this.pages.clear();
    if (!keepPlace) {
      this.unfolded = [];
      this.active = 0;
      this.scroller.scrollTop = 0;
    }
    await this.load(keepPlace ? Math.floor(this.locate(Math.floor(this.firstRow())).index / PAGE) : 0);
  }

  /** How many rows there are with those that are unfolded. */
  get length() {
    return this.unfolded.reduce((sum, { rows }) => sum + rows.length, this.total);
  }

  /** What is at a place: the number of the row, and the form where it is one that is unfolded under it. */
  locate(place) {
    let before = 0;
    for (const { index, rows } of this.unfolded) {
      if (place <= index + before) break;
      if (place <= index + before + rows.length) return { index, form: rows[place - index - before - 1] };
      before += rows.length;
    }
    return { index: place - before, form: null };
  }

  placeOf(index) {
    return this.unfolded.reduce((place, one) => (one.index < index ? place + one.rows.length : place), index);
  }

  /** Shows the forms of the row at a place below it, or hides them. */
  async unfold(place, wanted = null) {
    const { index, form } = this.locate(place);
    const row = this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
    const open = this.unfolded.some((one) => one.index === index);
    if (!row || !this.hasForms?.(row) || (form && wanted !== false) || open === wanted) return;
    if (open) {
      this.unfolded = this.unfolded.filter((one) => one.index !== index);
      if (form) this.active = this.placeOf(index);
    } else {
      const { generation } = this;
      const rows = await this.fetchForms(row);
      if (generation !== this.generation) return;
      this.unfolded = [...this.unfolded, { index, parent: row.source, rows }].sort((a, b) => a.index - b.index);
    }
    this.body.replaceChildren();
    this.rows.clear();
    this.draw();
  }

  get height() {
    return Math.min(this.length * this.rowHeight, TALLEST);
  }

  /** The row at the top of the window; a fraction. */
  firstRow() {
    const room = this.height - this.scroller.clientHeight;
    const rows = this.length - this.scroller.clientHeight / this.rowHeight;
    return room <= 0 ? 0 : Math.max(0, (this.scroller.scrollTop / room) * rows);
  }

  scrolled() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  rowAt(place) {
    const { index, form } = this.locate(place);
    return form ?? this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  draw() {
    this.body.style.height = `${this.height}px`;
    this.element.setAttribute("aria-rowcount", this.length + 1);
    this.element.style.setProperty("--scrollbar", `${this.scroller.offsetWidth - this.scroller.clientWidth}px`);
    const first = this.firstRow();
    const from = Math.max(0, Math.floor(first) - BEYOND);
    const to = Math.min(this.length, Math.ceil(first + this.scroller.clientHeight / this.rowHeight) + BEYOND);
    for (const [index, element] of this.rows) {
      if (index < from || index >= to) {
        element.remove();
        this.rows.delete(index);
      }
    }
    for (let index = from; index < to; index += 1) this.drawRow(index, first);
    const shown = this.rows.get(this.active);
    if (shown) this.element.setAttribute("aria-activedescendant", shown.id);
    else this.element.removeAttribute("aria-activedescendant");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.need(from, to), PAUSE_MS);
  }

  drawRow(index, first) {
    const row = this.rowAt(index);
    const { index: own, form } = this.locate(index);
    const unfolded = this.unfolded.some((one) => one.index === own);
    let element = this.rows.get(index);
    if (!element || element.row !== row) {
      const made = el("div", { role: "row", class: `grid-row${row ? "" : " pending"}`, id: `${this.id}-row-${index}`, "aria-rowindex": index + 2,
        "aria-level": this.hasForms ? (form ? 2 : 1) : null, "aria-expanded": row && !form && this.hasForms?.(row) ? String(unfolded) : null },
      this.columns.map((column) => el("div", { role: "gridcell", class: `cell ${column.name}${column.number ? " number" : ""}` }, row ? column.cell(row, { form: Boolean(form), unfolded, unfold: () => this.unfold(index) }) : "…")));
      made.row = row;
      made.addEventListener("click", (event) => this.clicked(index, event));
      if (element) element.replaceWith(made);
      else this.body.append(made);
      this.rows.set(index, made);
      element = made;
    }
    element.classList.toggle("active", index === this.active);
    if (this.selected && row) element.setAttribute("aria-selected", String(this.selected(row)));
    element.style.transform = `translateY(${Math.round(this.scroller.scrollTop + (index - first) * this.rowHeight)}px)`;
  }

  need(from, to) {
    const [low, high] = [from, Math.max(from, to - 1)].map((place) => Math.floor(this.locate(place).index / PAGE));
    for (const [page, control] of this.fetching) {
      if (page < low - 1 || page > high + 1) {
        control.abort();
        this.fetching.delete(page);
      }
    }
    for (let page = low; page <= high; page += 1) {
      if (this.total > 0 && !this.pages.has(page) && !this.fetching.has(page)) this.load(page);
    }
  }

  async load(page) {
    const control = new AbortController();
    const { generation } = this;
    this.fetching.set(page, control);
    try {
      const { total, rows } = await this.fetchPage(page * PAGE, PAGE, control.signal);
      if (generation !== this.generation) return;
      this.total = total;
      this.pages.delete(page);
      this.pages.set(page, rows);
      this.unfolded = this.unfolded.filter(({ index, parent }) => Math.floor(index / PAGE) !== page || rows[index % PAGE]?.source === parent);
      if (this.pages.size > KEPT_PAGES) this.pages.delete(this.pages.keys().next().value);
      this.ontotal?.(total);
      this.draw();
    } catch (error) {
      if (generation === this.generation) this.onerror?.(error);
    } finally {
      if (this.fetching.get(page) === control) this.fetching.delete(page);
    }
  }

  clicked(index, event) {
    if (event.target.closest("a, button, input")) return;
    this.active = index;
    this.draw();
    if (this.rowAt(index)) this.onopen(this.rowAt(index), index);
  }

  key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.length, End: this.length };
    if (event.key === "Enter" && this.rowAt(this.active)) this.onopen(this.rowAt(this.active), this.active);
    else if (event.key === " " && this.onselect && this.rowAt(this.active)) this.select(this.rowAt(this.active));
    else if (this.hasForms && event.key === "ArrowRight") this.unfold(this.active, true).catch(this.onerror);
    else if (this.hasForms && event.key === "ArrowLeft") this.unfold(this.active, false).catch(this.onerror);
    else if (event.key in steps) this.goTo(this.active + steps[event.key]);
    else return;
    event.preventDefault();
  }

  /** Selects a row for an action on many, or takes it out again. */
  select(row) {
    this.onselect(row);
    this.draw();
  }

  /** Makes a row the active one and brings it into sight. */
  goTo(index) {
    this.active = Math.max(0, Math.min(this.length - 1, index));
    const inSight = this.scroller.clientHeight / this.rowHeight;
    const first = this.firstRow();
    let top = first;
    if (this.active < first) top = this.active;
    else if (this.active + 1 > first + inSight) top = this.active + 1 - inSight;
    if (top !== first) this.scroller.scrollTop = (top / Math.max(1, this.length - inSight)) * (this.height - this.scroller.clientHeight);
    this.draw();
  }
}
