// One entry to decide about: candidates to judge with 1–9 (right, wrong, unsure), another translation, none, skip, note, undo.
// Review, audit and the page of an entry all use it; the audit leaves out everything the model thinks.

import { combobox } from "./combobox.js";
import { button, el, field, freshId, replace } from "./dom.js";
import { count, time } from "./format.js";
import { shortcuts } from "./keys.js";
import { warn } from "./notices.js";
import { confidence, kindName } from "./parts.js";
import { plain, wordOf } from "./words.js";

const VERDICTS = { yes: ["✓", "right"], no: ["✗", "wrong"], unsure: ["?", "unsure"] };
const NEXT = { unknown: "yes", yes: "no", no: "unsure", unsure: "unknown" };

/** What several people said about one entry, side by side; `beside(decision)` adds something to each. */
export function opinions(decisions, lang, beside = () => null) {
  const words = (list) => list.flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang })]);
  return el("div", { class: "opinions" }, decisions.map((one) => el("section", { class: "opinion" }, el("header", {}, el("strong", {}, wordOf(one.reviewer)), el("small", {}, time(one.at))),
    el("p", { class: "said" }, one.verdict === "none" ? "none is right" : one.verdict === "skip" ? "skipped" : ["✓ ", words(one.accepted)]),
    one.verdict !== "none" && one.rejected?.length ? el("p", { class: "said" }, "✗ ", words(one.rejected)) : null,
    one.unsure?.length ? el("p", { class: "said" }, "? ", words(one.unsure)) : null,
    one.note ? el("p", { class: "hint" }, wordOf(one.note)) : null, beside(one))));
}

/**
 * The card of one entry.
 *
 * @param {object} given
 *   item: {source, source_rank, kind, forms, candidates: [{word, forms, confidence, rank, known}], neighbours}; languages: [source, target];
 *   complete: completion of typed translations; isKnown: async (word) => whether the target vocabulary has it;
 *   chosen, rejected, unsure: verdicts given before (after an undo); note: text of the note;
 *   title: a heading in place of the word;
 *   actions: {save({accepted, rejected, unsure}, note), none(note), skip(), undo(), why(word)}, each async; undo and why may be missing.
 */
export class DecisionCard {
  constructor({ item, languages, complete, isKnown, actions, chosen = [], rejected = [], unsure = [], note = "", blind = false, title = null }) {
    Object.assign(this, { item, languages, complete, isKnown, actions, blind });
    this.words = item.candidates.slice(0, 9).map(({ word }) => word);
    this.verdicts = new Map(this.words.map((word) => [word, chosen.includes(word) ? "yes" : rejected.includes(word) ? "no" : unsure.includes(word) ? "unsure" : "unknown"]));
    this.typed = chosen.filter((word) => !this.words.includes(word));
    this.asked = new Set();
    this.busy = false;
    this.heading = el("h2", { class: title ? "" : "entry-word headword", tabindex: "-1", id: freshId("entry") }, title ?? wordOf(item.source, { lang: languages[0].code }));
    this.rows = item.candidates.slice(0, 9).map((candidate, index) => this.candidate(candidate, index));
    this.typedList = el("ul", { class: "chips", "aria-label": "Typed translations" });
    this.question = el("p", { class: "hint question", role: "status" });
    this.toStore = el("p", { class: "to-store", role: "status" });
    this.note = el("textarea", { rows: 1, maxlength: 2000, "aria-label": "Note", placeholder: "note", dir: "auto" });
    this.note.value = note;
    this.details = el("div", { class: "details", hidden: true });
    this.side = el("aside", { class: "decision-side", "aria-label": "About this word" }, this.context());
    this.typing = combobox({ label: "Another translation", lang: languages[1].code, complete, onpick: (word) => this.offer(word), placeholder: "another translation" });
    this.element = el("section", { class: "card decision", "aria-labelledby": this.heading.id },
      el("div", { class: "decision-main" },
        el("header", {}, this.heading, title ? null : el("span", { class: "hint" }, kindName(item.kind), item.source_rank ? ` · rank ${count(item.source_rank)}` : "")),
        el("ol", { class: "candidates" }, this.rows),
        this.typedList, el("div", { class: "write-row" },
          el("div", { class: "row type-row" }, el("kbd", { "aria-hidden": "true" }, "t"), this.typing.element),
          el("div", { class: "row note-row" }, el("kbd", { "aria-hidden": "true" }, "m"), this.note)),
        this.question, this.bar()), this.side);
    this.typing.input.addEventListener("keydown", (event) => this.typingKey(event));
    this.note.addEventListener("keydown", (event) => this.noteKey(event));
    this.drawTyped();
    this.drawVerdicts();
    this.stopKeys = shortcuts(this.keys());
  }

  context() {
    const { neighbours = [], notes = [], forms = [], decisions = [] } = this.item;
    const lang = this.languages[0].code;
    const listed = (label, words, most) => (words.length ? el("p", { class: "words" }, el("span", { class: "aside-label" }, `${label} `), words.slice(0, most).flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang, longest: 30 })]), words.length > most ? " …" : "") : null);
    return [decisions.length > 1 ? opinions(decisions, this.languages[1].code) : null,
      notes.map(({ reviewer, note }) => el("p", {}, el("span", { class: "aside-label" }, wordOf(reviewer), " "), wordOf(note, { className: "note-text" }))),
      listed("Forms", forms, 12), listed("Near", neighbours, 8)];
  }

  candidate({ word, forms = [], confidence: sure, rank, known }, index) {
    const lang = this.languages[1].code;
    const main = button([el("kbd", { "aria-hidden": "true" }, String(index + 1)), el("span", { class: "candidate-word" }, wordOf(word, { lang }),
      forms.length ? el("small", {}, " ", forms.slice(0, 3).flatMap((form, place) => [place ? ", " : "", wordOf(form, { lang, longest: 24 })])) : null),
      this.blind ? null : el("span", { class: "candidate-facts" }, known ? el("span", { class: "badge good" }, "known") : null, confidence(sure), el("small", { class: "number" }, rank ? `rank ${count(rank)}` : ""))],
    () => this.judge(word, "yes"), { class: "candidate", "data-word": plain(word) });
    const others = this.blind ? [] : ["no", "unsure"].map((verdict) => button(VERDICTS[verdict][0], () => this.judge(word, verdict), { class: `small verdict ${verdict}`, "aria-label": `${plain(word, 60)} is ${VERDICTS[verdict][1]}`, "data-verdict": verdict }));
    return el("li", { class: "candidate-row" }, main, others);
  }

  bar() {
    const labelled = (label, key, action, properties) => button([label, el("kbd", { "aria-hidden": "true" }, key)], action, properties);
    this.saveButton = labelled("Save", "Enter", () => this.save(), { class: "primary save" });
    return el("div", { class: "decision-bar" }, this.toStore, el("div", { class: "row", role: "group", "aria-label": "Decide" }, this.saveButton,
      labelled(el("span", {}, "None", el("span", { class: "long" }, " is right")), "n", () => this.none(), { class: "none", title: `Stores all ${this.words.length} shown as wrong.` }), labelled("Skip", "s", () => this.run("skip"), { class: "skip" }),
      this.actions.undo ? labelled("Undo", "u", () => this.run("undo"), { class: "undo" }) : null,
      this.actions.why ? labelled("Why", "w", () => this.why(), { class: "why-toggle" }) : null));
  }

  keys() {
    const keys = {
      Enter: () => this.save(), n: () => this.none(), 0: () => this.none(), s: () => this.run("skip"), m: () => this.note.focus(),
      t: () => this.typing.input.focus(),
    };
    if (this.actions.undo) Object.assign(keys, { u: () => this.run("undo"), "ctrl+z": () => this.run("undo") });
    if (this.actions.why) keys.w = () => this.why();
    this.words.forEach((word, index) => { keys[String(index + 1)] = () => this.judge(word, this.blind ? "yes" : NEXT[this.verdicts.get(word)]); });
    return keys;
  }

  /** Gives a candidate a verdict; the same one again takes it back. */
  judge(word, verdict) {
    this.verdicts.set(word, this.verdicts.get(word) === verdict ? "unknown" : verdict);
    this.drawVerdicts();
  }

  drawVerdicts() {
    this.rows.forEach((row, index) => {
      const verdict = this.verdicts.get(this.words[index]);
      row.dataset.verdict = verdict;
      row.firstChild.setAttribute("aria-pressed", String(verdict === "yes"));
      row.querySelectorAll(".verdict").forEach((made) => made.setAttribute("aria-pressed", String(made.dataset.verdict === verdict)));
    });
    const { accepted, rejected, unsure } = this.stored();
    const unknown = this.words.length - this.words.filter((word) => this.verdicts.get(word) !== "unknown").length;
    const part = (sign, words) => (words.length ? [` ${sign} `, words.flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang: this.languages[1].code, longest: 40 })])] : null);
    if (this.blind) replace(this.toStore);
    else if (!accepted.length && !rejected.length && !unsure.length) replace(this.toStore, "Nothing is judged yet: press a number once for right, twice for wrong, three times for unsure.");
    else replace(this.toStore, "To be stored:", part("✓", accepted), part("✗", rejected), part("?", unsure), unknown ? ` · ${unknown} not judged` : "", accepted.length ? "" : " · the entry stays in the queue");
  }

  stored() {
    const having = (verdict) => this.words.filter((word) => this.verdicts.get(word) === verdict);
    return { accepted: [...having("yes"), ...this.typed], rejected: having("no"), unsure: having("unsure") };
  }

  /** Takes a typed word; one that the vocabulary does not have is asked about once. */
  async offer(word) {
    // The Enter that added the word must not save as well.
    this.justAdded = true;
    setTimeout(() => { this.justAdded = false; });
    if (this.words.includes(word)) this.verdicts.set(word, "yes");
    else if (!this.typed.includes(word)) {
      if (!(await this.mayAdd(word))) return;
      this.typed.push(word);
    }
    this.typing.input.value = "";
    replace(this.question);
    this.drawTyped();
    this.drawVerdicts();
  }

  async mayAdd(word) {
    if (this.asked.has(word) || !this.isKnown || await this.isKnown(word)) return true;
    this.asked.add(word);
    this.typing.input.value = word;
    replace(this.question, wordOf(word, { longest: 60 }), " is not among the words of this model. Press Enter again to add it all the same.");
    return false;
  }

  drawTyped() {
    replace(this.typedList, this.typed.map((word) => el("li", {}, wordOf(word, { lang: this.languages[1].code }), button("×", () => {
      this.typed = this.typed.filter((other) => other !== word);
      this.drawTyped();
      this.drawVerdicts();
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

  why() {
    const word = this.stored().accepted.find((other) => this.words.includes(other)) ?? this.words[0];
    if (!word) return;
    this.details.hidden = !this.details.hidden;
    if (this.details.hidden) return;
    this.side.prepend(replace(this.details, this.actions.why(word)));
    if (matchMedia("(max-width: 60rem)").matches) this.details.scrollIntoView({ block: "center" });
  }

  async save() {
    const left = this.typing.input.value.trim();
    if (left) {
      await this.offer(left);
      if (this.typing.input.value) return;
    }
    const stored = this.stored();
    if (!stored.accepted.length && !stored.rejected.length && !stored.unsure.length) {
      warn("Judge a candidate or type a translation first; n says that none is right.");
      return;
    }
    await this.run("save", stored, this.note.value.trim());
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
