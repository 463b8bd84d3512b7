// One entry to decide about: candidates to choose with 1–9, another translation to type, none, skip, note, undo.
// Review, audit and the page of an entry all use it; the audit leaves out everything the model thinks.

import { combobox } from "./combobox.js";
import { button, el, field, freshId, replace } from "./dom.js";
import { count } from "./format.js";
import { shortcuts } from "./keys.js";
import { warn } from "./notices.js";
import { confidence } from "./parts.js";
import { plain, wordOf } from "./words.js";

/**
 * The card of one entry.
 *
 * @param {object} given
 *   item: {source, source_rank, candidates: [{word, confidence, rank, known}], neighbours}; languages: [source, target];
 *   complete: completion of typed translations; chosen: words chosen before (after an undo); note: text of the note;
 *   actions: {save(words, note), none(note), skip(), undo(), why(word)}, each async; undo and why may be missing.
 */
export class DecisionCard {
  constructor({ item, languages, complete, actions, chosen = [], note = "", blind = false }) {
    Object.assign(this, { item, languages, complete, actions, blind });
    this.words = item.candidates.slice(0, 9).map(({ word }) => word);
    this.chosen = new Set(chosen.filter((word) => this.words.includes(word)));
    this.typed = chosen.filter((word) => !this.words.includes(word));
    this.busy = false;
    this.heading = el("h2", { class: "entry-word", tabindex: "-1", id: freshId("entry") }, wordOf(item.source, { lang: languages[0].code }));
    this.buttons = item.candidates.slice(0, 9).map((candidate, index) => this.candidate(candidate, index));
    this.typedList = el("ul", { class: "chips", "aria-label": "Typed translations" });
    this.note = el("textarea", { rows: 2, maxlength: 2000, id: freshId("note"), dir: "auto" });
    this.note.value = note;
    this.notePlace = el("div", { hidden: note === "" }, field("Note", this.note, "Saved with the decision. Escape leaves the field."));
    this.details = el("div", { class: "details", hidden: true });
    this.typing = combobox({ label: "Another translation", lang: languages[1].code, complete, onpick: (word) => this.add(word), placeholder: "another translation" });
    this.element = el("section", { class: "card decision", "aria-labelledby": this.heading.id },
      el("header", {}, this.heading, el("span", { class: "hint" }, item.source_rank ? `rank ${count(item.source_rank)}` : "")),
      this.context(), el("ol", { class: "candidates" }, this.buttons.map((made) => el("li", {}, made))),
      this.typedList, el("div", { class: "row type-row" }, el("kbd", { "aria-hidden": "true" }, "t"), this.typing.element), this.notePlace, this.bar(), this.details);
    this.typing.input.addEventListener("keydown", (event) => this.typingKey(event));
    this.note.addEventListener("keydown", (event) => this.noteKey(event));
    this.drawTyped();
    this.stopKeys = shortcuts(this.keys());
  }

  context() {
    const { neighbours = [], notes = [] } = this.item;
    const lang = this.languages[0].code;
    return el("div", { class: "context" },
      neighbours.length ? el("p", { class: "hint" }, "near: ", neighbours.slice(0, 6).flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang, longest: 30 })])) : null,
      notes.map(({ reviewer, note }) => el("p", { class: "hint" }, wordOf(reviewer), ": ", wordOf(note, { className: "note-text" }))));
  }

  candidate({ word, confidence: sure, rank, known }, index) {
    const made = button([el("kbd", { "aria-hidden": "true" }, String(index + 1)), wordOf(word, { lang: this.languages[1].code, className: "candidate-word" }),
      this.blind ? null : el("span", { class: "candidate-facts" }, known ? el("span", { class: "badge good" }, "known") : null, confidence(sure), el("small", { class: "number" }, rank ? `rank ${count(rank)}` : ""))],
    () => this.toggle(index), { class: "candidate", "aria-pressed": String(this.chosen.has(word)), "data-word": plain(word) });
    return made;
  }

  bar() {
    const labelled = (label, key, action, properties) => button([label, el("kbd", { "aria-hidden": "true" }, key)], action, properties);
    this.saveButton = labelled("Save", "Enter", () => this.save(), { class: "primary save" });
    return el("div", { class: "row decision-bar", role: "group", "aria-label": "Decide" }, this.saveButton,
      labelled("None is right", "n", () => this.none(), { class: "none" }), labelled("Skip", "s", () => this.run("skip"), { class: "skip" }),
      labelled("Note", "m", () => this.openNote(), { class: "note" }),
      this.actions.undo ? labelled("Undo", "u", () => this.run("undo"), { class: "undo" }) : null,
      this.actions.why ? labelled("Why", "w", () => this.why(), { class: "why-toggle" }) : null);
  }

  keys() {
    const keys = {
      Enter: () => this.save(), n: () => this.none(), 0: () => this.none(), s: () => this.run("skip"), m: () => this.openNote(),
      t: () => this.typing.input.focus(),
    };
    if (this.actions.undo) Object.assign(keys, { u: () => this.run("undo"), "ctrl+z": () => this.run("undo") });
    if (this.actions.why) keys.w = () => this.why();
    this.words.forEach((_, index) => { keys[String(index + 1)] = () => this.toggle(index); });
    return keys;
  }

  toggle(index) {
    const word = this.words[index];
    if (this.chosen.has(word)) this.chosen.delete(word);
    else this.chosen.add(word);
    this.buttons[index].setAttribute("aria-pressed", String(this.chosen.has(word)));
  }

  add(word) {
    const index = this.words.indexOf(word);
    if (index >= 0 && !this.chosen.has(word)) this.toggle(index);
    else if (index < 0 && !this.typed.includes(word)) this.typed.push(word);
    this.typing.input.value = "";
    this.drawTyped();
    // The Enter that added the word must not save as well.
    this.justAdded = true;
    setTimeout(() => { this.justAdded = false; });
  }

  drawTyped() {
    replace(this.typedList, this.typed.map((word) => el("li", {}, wordOf(word, { lang: this.languages[1].code }), button("×", () => {
      this.typed = this.typed.filter((other) => other !== word);
      this.drawTyped();
      this.typing.input.focus();
    }, { class: "quiet small", "aria-label": "Remove" }))));
  }

  typingKey(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" && !event.defaultPrevented) this.heading.focus();
    else if (event.key === "Enter" && event.target.value === "" && !event.repeat && !this.justAdded) this.save();
  }

  noteKey(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      this.heading.focus();
    }
  }

  openNote() {
    this.notePlace.hidden = false;
    this.note.focus();
  }

  why() {
    const word = [...this.chosen][0] ?? this.words[0];
    this.details.hidden = !this.details.hidden;
    if (!this.details.hidden && word) replace(this.details, this.actions.why(word));
  }

  save() {
    const words = [...this.words.filter((word) => this.chosen.has(word)), ...this.typed];
    const left = this.typing.input.value.trim();
    if (left && !words.includes(left)) words.push(left);
    if (!words.length) {
      warn("Choose a candidate or type a translation first; n says that none is right.");
      return undefined;
    }
    return this.run("save", words, this.note.value.trim());
  }

  none() {
    return this.run("none", this.note.value.trim());
  }

  /** Runs one action; keys that are pressed meanwhile are not taken, because the next entry is not in sight yet. */
  async run(name, ...given) {
    if (this.busy) return;
    this.busy = true;
    this.element.setAttribute("aria-busy", "true");
    try {
      await this.actions[name](...given);
    } catch (error) {
      warn(error);
    } finally {
      this.busy = false;
      this.element.removeAttribute("aria-busy");
    }
  }

  /** Gives the word the focus, so that screen readers read it and keys work. */
  focus() {
    this.heading.focus({ preventScroll: true });
  }
}
