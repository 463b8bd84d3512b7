// The list of keys, in a dialog.

import { button, el } from "../lib/dom.js";
import { keysOn, switchKeys } from "../lib/keys.js";
import { check } from "../lib/parts.js";

const KEYS = [
  ["1 – 9", "judge a candidate: right, again wrong, again unsure, again not judged"],
  ["Enter", "save the verdicts and continue"],
  ["t", "type another translation; Enter adds it, Escape leaves the field"],
  ["n", "none of those shown is right"],
  ["s", "skip"],
  ["m", "write a note"],
  ["u", "undo, as often as you like; also Ctrl+Z"],
  ["w", "why: the neighbours of the chosen or first candidate (review)"],
  ["e", "the structure of an entry; Ctrl+Enter saves it (page of an entry)"],
  ["/", "go to the search field (translate, dictionary)"],
  ["↑ ↓ Page Home End", "move through the dictionary; Enter opens an entry, Space selects it for “Change many”"],
  ["→ ←", "show or hide the forms of a headword (dictionary)"],
  ["+ − 0 and arrows", "zoom and move the map while it has the focus"],
  ["?", "this list"],
];

/** Opens the dialog; closing it gives the focus back. */
export function keyHelp() {
  if (document.querySelector("dialog#keys")) return;
  const dialog = el("dialog", { id: "keys", "aria-labelledby": "keys-heading", onclose: () => dialog.remove() },
    el("h2", { id: "keys-heading" }, "Keys"),
    el("table", {}, el("tbody", {}, KEYS.map(([key, meaning]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, meaning))))),
    check("Single-letter shortcuts", keysOn(), switchKeys),
    el("div", { class: "row" }, button("Close", () => dialog.close(), { class: "primary" })));
  document.body.append(dialog);
  dialog.showModal();
}
