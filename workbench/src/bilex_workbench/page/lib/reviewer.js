// Who reviews: a name, kept in this browser.

import { api } from "./api.js";
import { el, field, freshId } from "./dom.js";
import { warn } from "./notices.js";

const KEY = "bilex-reviewer";

/** The name, or "" where none was given yet. */
export const reviewerName = () => localStorage.getItem(KEY) ?? "";

/** A form for the name; calls back with it. Names that are known already are offered. */
export function reviewerForm(onname) {
  const names = el("datalist", { id: freshId("names") });
  const input = el("input", { type: "text", name: "reviewer", value: reviewerName(), required: true, maxlength: 60, autocomplete: "nickname", list: names.id, id: freshId("reviewer") });
  api.get("review/reviewers")
    .then(({ reviewers }) => names.append(...reviewers.map(({ name }) => el("option", { value: name }))))
    .catch(warn);
  return el("form", {
    class: "fields reviewer-form",
    onsubmit: (event) => {
      event.preventDefault();
      const name = input.value.trim();
      if (!name) return;
      localStorage.setItem(KEY, name);
      onname(name);
    },
  }, field("Your name", input, "Decisions are stored under this name."), names, el("button", { type: "submit", class: "primary" }, "Continue"));
}
