// Audit: a random sample reviewed blind, and what it says about the whole dictionary.

import { api } from "../lib/api.js";
import { DecisionCard } from "../lib/decision.js";
import { opposite, sided } from "../lib/direction.js";
import { button, el, field, replace } from "../lib/dom.js";
import { count, counted, range } from "../lib/format.js";
import { clearWarnings, say, warn } from "../lib/notices.js";
import { bar, card, stats, table, viewHead } from "../lib/parts.js";
import { reviewerForm, reviewerName } from "../lib/reviewer.js";
import { completer } from "./translate.js";
import { auditReport } from "./audit_report.js";

const AHEAD = 2;

class AuditView {
  constructor(place, app) {
    this.app = app;
    this.model = sided(app.model);
    this.inside = el("div", { class: "audit-place" });
    this.beside = el("div", { class: "row" });
    replace(place, viewHead("Audit", this.beside), el("p", { class: "lead" },
      "How good is this dictionary? A random sample over all frequencies and confidences is reviewed blind: the candidates are in random order, and nothing shows which one the model prefers."), this.inside);
    this.reviewer = reviewerName();
    if (this.reviewer) this.load();
    else {
      replace(this.inside, card("Who reviews?", reviewerForm((name) => { this.reviewer = name; this.load(); })));
      this.inside.querySelector("input").focus();
    }
  }

  async load() {
    try {
      const { audit } = await api.get("audit");
      this.audit = audit;
      if (audit === null) this.drawStart();
      else await this.drawSummary();
    } catch (error) {
      warn(error);
    }
  }

  startForm() {
    const size = el("input", { type: "number", min: 10, max: 5000, value: 200, id: "audit-size", required: true });
    const seed = el("input", { type: "number", min: 0, value: 1, id: "audit-seed", required: true });
    const least = el("input", { type: "number", min: 0, max: 100, id: "audit-confidence" });
    return el("form", {
      class: "fields",
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          await api.post("audit", { size: Number(size.value), reviewer: this.reviewer, random_seed: Number(seed.value), min_confidence: least.value === "" ? null : Number(least.value) / 100, max_rank: null });
          await this.load();
          await this.begin();
        } catch (error) {
          warn(error);
        }
      },
    }, field("Entries in the sample", size, "200 give an interval of about ±7 points."), field("Random seed", seed), field("Only from confidence (%)", least, "Empty: the whole dictionary."),
    el("button", { type: "submit", class: "primary", id: "audit-start" }, "Draw a sample"));
  }

  drawStart() {
    replace(this.beside);
    replace(this.inside, card("Draw a sample", this.startForm()));
  }

  async drawSummary() {
    this.card?.stopKeys();
    const { decided, size, strata } = this.audit;
    replace(this.beside, decided < size ? button(decided ? "Continue the audit" : "Start the audit", () => this.begin(), { class: "primary", id: "audit-go" }) : null);
    const report = await auditReport(this.app, () => this.load());
    replace(this.inside, card("The sample", stats([["Decided", `${count(decided)} of ${count(size)}`], ["Strata", count(strata.length)]]), bar(decided / size),
      el("details", {}, el("summary", {}, "Strata"), table("Strata of the sample", [["Frequency band"], ["Confidence"], ["Entries", true], ["Drawn", true], ["Decided", true]],
        strata.map((stratum) => [range(stratum.band), range(stratum.confidence), count(stratum.entries), count(stratum.drawn), count(stratum.decided)])))),
    report, card("Another sample", el("p", { class: "hint" }, "Draws a new sample and makes it the current one; earlier ones are kept."), this.startForm()));
  }

  async begin() {
    this.waiting = [];
    this.item = null;
    await this.fetchMore();
    this.next();
  }

  async fetchMore() {
    const { items, decided, size } = await api.get("audit/next", { reviewer: this.reviewer, count: AHEAD });
    const known = new Set([this.item, ...this.waiting].filter(Boolean).map(({ number }) => number));
    this.waiting.push(...items.filter(({ number }) => !known.has(number)));
    Object.assign(this.audit, { decided, size });
  }

  next() {
    const item = this.waiting.shift();
    if (!item) {
      say("The sample is reviewed.");
      this.load();
      return;
    }
    this.draw(item);
    if (!this.waiting.length) this.fetchMore().catch(warn);
  }

  draw(item, chosen = []) {
    this.card?.stopKeys();
    this.item = item;
    const { decided, size } = this.audit;
    this.card = new DecisionCard({
      item: { ...item, candidates: item.candidates.map((word) => ({ word })) }, chosen, blind: true, languages: [this.model.source, this.model.target], complete: completer(opposite()),
      actions: {
        save: ({ accepted }, note) => this.decide("accept", accepted, note), none: (note) => this.decide("none", [], note),
        skip: () => this.decide("skip", [], ""), undo: () => this.undo(),
      },
    });
    replace(this.beside, button("Stop and see the report", () => this.load(), { id: "audit-stop" }));
    replace(this.inside, el("div", { class: "review-bar" }, bar(decided / size), el("span", { class: "hint", id: "audit-progress" }, `${count(decided)} of ${counted(size, "entry", "entries")} decided`)), this.card.element);
    this.card.focus();
  }

  async decide(verdict, words, note) {
    const { number, candidates } = this.item;
    const answer = await api.post("audit/decide", {
      number, reviewer: this.reviewer, verdict, note, right: words.filter((word) => candidates.includes(word)), typed: words.filter((word) => !candidates.includes(word)),
    });
    clearWarnings();
    Object.assign(this.audit, { decided: answer.decided, size: answer.size });
    if (!this.waiting.length) {
      await this.fetchMore();
      this.waiting = this.waiting.filter((other) => other.number !== number);
    }
    this.next();
  }

  async undo() {
    const { item, decided, size } = await api.post("audit/undo", { reviewer: this.reviewer });
    clearWarnings();
    Object.assign(this.audit, { decided, size });
    this.waiting = [this.item, ...this.waiting].filter((other) => other && other.number !== item.number);
    this.draw(item);
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new AuditView(place, app);
  return { leave: () => view.card?.stopKeys() };
}
