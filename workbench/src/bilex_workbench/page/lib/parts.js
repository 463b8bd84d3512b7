// Small pieces that several views show.

import { el, freshId } from "./dom.js";
import { percent } from "./format.js";
import { link } from "./router.js";

const STATUS = {
  unreviewed: ["not reviewed", ""],
  accepted: ["accepted", "good"],
  corrected: ["corrected", "accent"],
  rejected: ["rejected", "bad"],
  skipped: ["skipped", "unsure"],
  disagreement: ["disagreement", "unsure"],
  covered: ["with its headword", "good"],
};

/** Kinds of entries, for filters and bulk actions. */
export const kinds = [["content", "content word"], ["function", "function word"], ["name", "name"], ["number", "number"], ["abbreviation", "abbreviation"], ["foreign", "foreign word"], ["inflected", "inflected form"], ["phrase", "phrase"]];
const KIND_NAMES = Object.fromEntries(kinds);

/** A kind in words. */
export const kindName = (kind) => KIND_NAMES[kind] ?? kind ?? "";

/** The names of all states of an entry, for filters. */
export const statuses = Object.entries(STATUS).map(([name, [label]]) => [name, label]);

/** A state of an entry as a coloured word. */
export function statusBadge(status) {
  const [label, colour] = STATUS[status] ?? [status, ""];
  return el("span", { class: `badge ${colour}` }, label);
}

/** A bar of a share between 0 and 1; the bar is decoration, the number beside it is read. */
export function bar(share) {
  const fill = el("span", { class: "bar-fill" });
  fill.style.width = `${Math.round(Math.min(1, Math.max(0, share ?? 0)) * 100)}%`;
  return el("span", { class: "bar-track", "aria-hidden": "true" }, fill);
}

/** A confidence as a bar and a number. */
export function confidence(value) {
  return el("span", { class: "confidence" }, bar(value), el("span", { class: "value" }, percent(value)));
}

/** A check box with its label. */
export function check(label, checked, onchange, properties = {}) {
  const box = el("input", { type: "checkbox", checked, id: freshId("check"), onchange: (event) => onchange?.(event.target.checked), ...properties });
  return el("div", { class: "check" }, box, el("label", { for: box.id }, label));
}

/** Numbers with their names, as a list of tiles. */
export function stats(pairs) {
  return el("dl", { class: "stats" }, pairs.map(([name, value]) => el("div", { class: "stat" }, el("dt", {}, name), el("dd", {}, value))));
}

/** A table with a caption for screen readers; columns are [heading, isNumber]. */
export function table(caption, columns, rows) {
  return el("div", { class: "scroll-x", tabindex: "0", role: "group", "aria-label": caption }, el("table", {},
    el("caption", { class: "hidden-text" }, caption),
    el("thead", {}, el("tr", {}, columns.map(([heading, number]) => el("th", { scope: "col", class: number ? "number" : null }, heading)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, index) => el("td", { class: columns[index][1] ? "number" : null }, cell)))))));
}

/** A placeholder: a sentence, and a link to what to do next. */
export function empty(text, view, query, label) {
  return el("div", { class: "empty" }, el("p", {}, text), el("a", { class: "button", href: link(view, query) }, label));
}

/** A card with a heading. */
export function card(heading, ...children) {
  const id = freshId("heading");
  return el("section", { class: "card", "aria-labelledby": id }, el("h2", { id }, heading), ...children);
}

/** The heading of a view, with elements beside it. */
export function viewHead(title, ...beside) {
  return el("div", { class: "view-head" }, el("h1", { tabindex: "-1" }, title), beside.length ? el("div", { class: "row" }, ...beside) : null);
}
