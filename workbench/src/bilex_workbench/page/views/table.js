// The dictionary as a table: search, filters, sorting, columns, all of it in the link.

import { api } from "../lib/api.js";
import { sided } from "../lib/direction.js";
import { button, debounce, el, field, replace, select } from "../lib/dom.js";
import { count, counted, percent, score, time } from "../lib/format.js";
import { shortcuts } from "../lib/keys.js";
import { say, warn } from "../lib/notices.js";
import { reviewerName } from "../lib/reviewer.js";
import { check, confidence, kindName, kinds, statusBadge, statuses, viewHead } from "../lib/parts.js";
import { go, link, rememberSettings } from "../lib/router.js";
import { VirtualTable } from "../lib/virtual.js";
import { plain, wordOf } from "../lib/words.js";

const ROW_HEIGHT = 36;
// What somebody looks for may be a form: with one of these, forms are rows of their own.
const SEEKING = ["q", "status", "noted", "reviewer", "assignee", "known", "doubtful", "fresh"];
const FILTERS = ["q", "in", "match", "min_confidence", "max_confidence", "band", "status", "mutual", "identical", "noted", "reviewer", "kind", "heads", "assignee", "known", "doubtful", "fresh"];
const SHOWN_AT_FIRST = ["select", "source", "target", "confidence", "kind", "source_rank", "status"];
const DIVISIONS = [["even", "one by one"], ["range", "by frequency"], ["letter", "by the alphabet"], ["kind", "by kind"]];
const YES_NO = [["", "any"], ["true", "yes"], ["false", "no"]];

const yesNo = (value) => (value === null ? "…" : value ? "yes" : "no");

/** The source word, with a button for its forms, or with its headword. */
function sourceCell(model, row, { form, unfolded, unfold }) {
  const lang = model.source.code;
  return [el("a", { href: link("entry", { source: row.source }), tabindex: "-1" }, wordOf(row.source, { lang })),
    row.forms ? button(`${unfolded ? "▾" : "▸"} ${count(row.forms)}`, unfold, { class: "quiet unfold", tabindex: "-1", "aria-label": `${counted(row.forms, "form")} of ${plain(row.source, 60)}` }) : null,
    row.headword !== row.source && !form ? el("small", {}, " of ", wordOf(row.headword, { lang })) : null];
}

function allColumns(view) {
  const { model } = view;
  return [
    { name: "select", heading: "Select", narrow: true, width: "2.25rem", cell: (row) => el("input", { type: "checkbox", tabindex: "-1", checked: view.selected.has(row.source), "aria-label": `Select ${plain(row.source, 60)}`, onchange: () => view.table.select(row) }) },
    { name: "source", heading: model.source.name ?? "Source", sort: "source", width: "minmax(7rem, 2fr)", cell: (row, given) => sourceCell(model, row, given) },
    { name: "target", heading: model.target.name ?? "Target", sort: "target", width: "minmax(7rem, 2fr)", cell: (row) => (row.accepted.length ? row.accepted : [row.answer ?? row.target ?? "–"]).flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang: model.target.code })]) },
    { name: "confidence", heading: "Confidence", sort: "confidence", width: "minmax(6rem, 1fr)", cell: (row) => (row.known ? el("span", { class: "badge" }, "seed") : confidence(row.confidence)) },
    { name: "score", heading: "Score", sort: "score", number: true, width: "5rem", cell: (row) => score(row.score) },
    { name: "kind", heading: "Kind", sort: "kind", width: "8rem", cell: (row) => kindName(row.kind) },
    { name: "source_rank", heading: "Rank", sort: "source_rank", number: true, width: "5.5rem", cell: (row) => count(row.source_rank) },
    { name: "target_rank", heading: "Target rank", sort: "target_rank", number: true, width: "7rem", cell: (row) => count(row.target_rank) },
    { name: "status", heading: "Status", sort: "status", width: "8.5rem", cell: (row) => statusBadge(row.status) },
    { name: "mutual", heading: "Mutual", width: "5rem", cell: (row) => yesNo(row.mutual) },
    { name: "identical", heading: "Same spelling", width: "7.5rem", cell: (row) => yesNo(row.identical) },
    { name: "reviewers", heading: "Reviewers", width: "minmax(6rem, 1fr)", cell: (row) => row.reviewers.flatMap((name, index) => [index ? ", " : "", wordOf(name)]) },
    { name: "assignee", heading: "Assigned to", width: "8rem", cell: (row) => wordOf(row.assignee) },
    { name: "decided", heading: "Decided", sort: "decided", width: "10rem", cell: (row) => (row.decided ? time(row.decided) : "") },
  ];
}

class TableView {
  constructor(place, query, app) {
    this.app = app;
    this.model = sided(app.model);
    this.query = { ...query };
    this.selected = new Set();
    this.columns = allColumns(this);
    this.found = el("p", { role: "status", class: "lead", id: "table-total" });
    this.filling = el("p", { class: "hint", id: "table-filling" });
    this.reviewers = el("select", { onchange: (event) => this.set("reviewer", event.target.value) }, el("option", { value: "" }, "anybody"));
    this.table = new VirtualTable({
      id: "entries", label: "Entries of the dictionary", rowHeight: ROW_HEIGHT, columns: this.shownColumns(), sort: this.sort(),
      fetchPage: (offset, limit, signal) => api.get("entries", { ...this.parameters(), offset, limit }, signal),
      onsort: (key) => this.sortBy(key), onopen: (row) => go("entry", { source: row.source }), onerror: warn,
      ontotal: () => this.describe(),
      hasForms: (row) => row.forms > 0, fetchForms: async (row) => (await api.get("entries", { headword: row.source, heads: false, limit: 100 })).rows,
      selected: (row) => this.selected.has(row.source), onselect: (row) => this.select(row),
    });
    this.none = el("div", { class: "card empty", id: "table-empty", hidden: true }, el("p", {}, "No entry matches these filters."), button("Clear the filters", () => this.clear(), { class: "primary" }));
    replace(place, viewHead("Dictionary", this.found), this.controls(), this.filling, this.none, this.table.element);
    this.stopKeys = shortcuts({ "/": () => this.search.focus() });
    this.listener = (model) => this.modelChanged(model);
    app.listeners.add(this.listener);
    this.loadReviewers();
    this.describeFilling();
    this.table.reload();
  }

  /** The filters as the server takes them; headwords only, unless a filter may be about forms. */
  filters() {
    const given = Object.fromEntries(FILTERS.map((name) => [name, this.query[name]]));
    if (!given.heads) given.heads = SEEKING.some((name) => given[name]) ? "" : "true";
    else if (given.heads === "all") given.heads = "";
    return given;
  }

  parameters() {
    return { ...this.filters(), sort: this.query.sort };
  }

  /** How many entries there are; where there is none, what to do next. */
  describe() {
    const { total } = this.table;
    const empty = total === 0 && sided(this.app.model).entries?.complete !== false;
    this.found.textContent = total || empty ? counted(total, "entry", "entries") : "";
    this.none.hidden = !empty;
    this.table.element.hidden = empty;
    this.describeBulk();
  }

  clear() {
    go("table", { columns: this.query.columns });
  }

  select({ source }) {
    if (!this.selected.delete(source)) this.selected.add(source);
    for (const [, element] of this.table.rows) {
      const box = element.querySelector(".select input");
      if (box && element.row) box.checked = this.selected.has(element.row.source);
    }
    this.describeBulk();
  }

  sort() {
    const key = this.query.sort ?? "source_rank";
    return { key: key.replace(/^-/, ""), falling: key.startsWith("-") };
  }

  shownColumns() {
    const names = (this.query.columns ?? SHOWN_AT_FIRST.join(",")).split(",");
    const shown = this.columns.filter(({ name }) => names.includes(name));
    return shown.length ? shown : this.columns.slice(0, 2);
  }

  set(name, value) {
    if (value === "" || value === null) delete this.query[name];
    else this.query[name] = value;
    rememberSettings("table", this.query);
    this.table.reload();
  }

  sortBy(key) {
    const { key: old, falling } = this.sort();
    const first = key === "confidence" || key === "score" || key === "decided" ? `-${key}` : key;
    this.query.sort = old === key ? (falling ? key : `-${key}`) : first;
    this.table.sort = this.sort();
    this.table.drawHead();
    this.set("sort", this.query.sort === "source_rank" ? "" : this.query.sort);
    [...this.table.head.querySelectorAll("button")].find((made) => made.closest("[aria-sort]"))?.focus();
  }

  controls() {
    const { query } = this;
    const later = debounce((value) => this.set("q", value.trim()), 200);
    this.search = el("input", { type: "search", value: query.q ?? "", id: "table-search", dir: "auto", oninput: (event) => later(event.target.value) });
    const shareInput = (name) => el("input", { type: "number", min: 0, max: 100, step: 1, value: query[name] === undefined ? "" : Math.round(query[name] * 100), oninput: debounce((event) => this.set(name, event.target.value === "" ? "" : Number(event.target.value) / 100), 250) });
    const chooser = (name, options) => select(options, query[name] ?? "", (value) => this.set(name, value), { id: `filter-${name}` });
    const bands = [["", "all"], ...(this.model.bands ?? []).map(({ name }) => [name, name])];
    return el("div", { class: "card table-controls" }, el("div", { class: "fields" }, field("Search", this.search),
      field("Status", chooser("status", [["", "all"], ...statuses])), field("Kind", chooser("kind", [["", "all"], ...kinds])),
      field("Forms", chooser("heads", [["", "under headwords"], ["all", "as rows"], ["false", "forms only"]])),
      el("details", { id: "more-filters", open: FILTERS.slice(1).some((name) => !["status", "kind", "heads"].includes(name) && query[name] !== undefined) }, el("summary", {}, "More filters"),
        el("div", { class: "fields" },
          field("Search in", chooser("in", [["", "both languages"], ["source", this.model.source.name ?? "source"], ["target", this.model.target.name ?? "target"]])),
          field("Matches", chooser("match", [["", "anywhere"], ["prefix", "beginning"], ["exact", "whole word"]])),
          field("Confidence from (%)", shareInput("min_confidence")), field("to (%)", shareInput("max_confidence")),
          field("Frequency band", chooser("band", bands)), field("Mutual", chooser("mutual", YES_NO)), field("Same spelling", chooser("identical", YES_NO)),
          field("With a note", chooser("noted", YES_NO)), field("From seeds", chooser("known", YES_NO)), field("Doubtful seed", chooser("doubtful", YES_NO)), field("New answer", chooser("fresh", YES_NO)), field("Reviewer", this.reviewers),
          field("Assigned to", el("input", { type: "text", maxlength: 60, value: query.assignee ?? "", id: "filter-assignee", oninput: debounce((event) => this.set("assignee", event.target.value.trim()), 250) }))),
        el("fieldset", {}, el("legend", {}, "Columns"), el("div", { class: "row", id: "columns" }, this.columns.map((column) => check(column.heading, this.shownColumns().includes(column), (on) => this.toggleColumn(column.name, on))))),
        el("div", { class: "row" }, button("Clear filters", () => this.clear(), { class: "quiet" }))),
      this.bulk()));
  }

  /** Actions on the selected entries, or on all that the filters find, each with a button to undo it. */
  bulk() {
    let kind = "content";
    let by = "even";
    const names = () => person.value.split(",").map((name) => name.trim()).filter(Boolean);
    const person = el("input", { type: "text", maxlength: 400, id: "bulk-person", placeholder: "aino, ben" });
    this.undoPlace = el("span", { class: "beside row", role: "status" });
    this.bulkScope = el("p", { class: "hint", id: "bulk-scope" });
    const act = (path, body, words) => async () => {
      const reviewer = reviewerName();
      if (!reviewer) return warn("Enter your name in Review first.");
      const many = this.selected.size || this.table.total;
      if (!confirm(`${words()} ${counted(many, "entry", "entries")}?`)) return undefined;
      const sources = this.selected.size ? [...this.selected] : null;
      const { batch, changed } = await api.post(path, { reviewer, sources, ...body() }, this.filters());
      say(`${counted(changed, "entry", "entries")} changed.`);
      replace(this.undoPlace, button(`Undo the change of ${counted(changed, "entry", "entries")}`, async () => {
        await api.post("entries/undo", { batch });
        replace(this.undoPlace, "Undone.");
        this.table.reload({ keepPlace: true });
      }, { id: "bulk-undo" }));
      this.selected.clear();
      return this.table.reload({ keepPlace: true });
    };
    return el("details", { id: "bulk" }, el("summary", {}, "Change many"), this.bulkScope, el("div", { class: "fields" },
      field("Kind", select(kinds, kind, (value) => { kind = value; }, { id: "bulk-kind" })), button("Set the kind", act("entries/mark", () => ({ kind }), () => `Set the kind to ${kindName(kind)} for`), { id: "bulk-set-kind" }),
      field("People, separated by commas", person), field("Divided", select(DIVISIONS, by, (value) => { by = value; }, { id: "bulk-by" })), button("Assign", act("entries/assign", () => ({ people: names(), by }), () => `Assign to ${names().join(", ") || "nobody"}`), { id: "bulk-assign" }),
      button("Assign to nobody", act("entries/mark", () => ({ assignee: "" }), () => "Remove the assignment of"), { id: "bulk-unassign" }),
      button("Accept first answers", act("entries/decide", () => ({ verdict: "accept" }), () => "Accept the first answer of"), { id: "bulk-accept" }),
      button("Reject first answers", act("entries/decide", () => ({ verdict: "none" }), () => "Reject the first answer of"), { id: "bulk-reject" }), this.undoPlace));
  }

  describeBulk() {
    this.bulkScope.textContent = this.selected.size ? `${counted(this.selected.size, "selected entry", "selected entries")}. Space selects a row.` : `All ${counted(this.table.total, "entry", "entries")} found. Select rows with Space or their boxes to change only those.`;
  }

  toggleColumn(name, on) {
    const names = this.shownColumns().map((column) => column.name).filter((other) => other !== name);
    const wanted = on ? [...names, name] : names;
    this.query.columns = this.columns.map((column) => column.name).filter((other) => wanted.includes(other)).join(",");
    if (this.query.columns === SHOWN_AT_FIRST.join(",")) delete this.query.columns;
    rememberSettings("table", this.query);
    this.table.setColumns(this.shownColumns());
  }

  async loadReviewers() {
    const { reviewers } = await api.get("review/reviewers");
    this.reviewers.append(...reviewers.map(({ name }) => el("option", { value: name, selected: name === this.query.reviewer }, name)));
  }

  describeFilling() {
    const { done, total, complete } = sided(this.app.model).entries ?? {};
    this.filling.hidden = complete !== false;
    if (complete === false) this.filling.textContent = `The table is being filled, most frequent words first: ${count(done)} of ${count(total)} (${percent(done / total)}).`;
  }

  modelChanged(model) {
    const [was, now] = [this.model, sided(model)];
    this.model = now;
    this.describeFilling();
    if (was.generation !== now.generation || was.entries?.done !== now.entries?.done || was.entries?.complete !== now.entries?.complete) this.table.reload({ keepPlace: true });
  }

  leave() {
    this.stopKeys();
    this.table.stop();
    this.app.listeners.delete(this.listener);
  }
}

/** Shows the view. */
export function show(place, query, app) {
  return new TableView(place, query, app);
}
