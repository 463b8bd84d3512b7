// Review: one entry at a time, in the order that pays most. A decision is on disk before the next entry is shown.

import { api } from "../lib/api.js";
import { DecisionCard } from "../lib/decision.js";
import { opposite, oriented, sided } from "../lib/direction.js";
import { button, el, field, replace, select } from "../lib/dom.js";
import { examplesPanel } from "../lib/examples.js";
import { count, percent } from "../lib/format.js";
import { shortcuts } from "../lib/keys.js";
import { clearWarnings, warn } from "../lib/notices.js";
import { bar, card, kinds, viewHead } from "../lib/parts.js";
import { reviewerForm, reviewerName } from "../lib/reviewer.js";
import { link, rememberSettings } from "../lib/router.js";
import { plain, wordOf } from "../lib/words.js";
import { completer, inVocabulary } from "./translate.js";
import { whyPanel } from "./why.js";

const AHEAD = 3;
const PREPARING_POLL_MS = 500;
const ORDERS = [["queue", "content words first"], ["frequency", "most frequent first"], ["confidence", "least confident first"], ["-confidence", "most confident first"], ["random", "random"], ["alphabet", "alphabetical"]];
const MODES = [["first", "not reviewed yet"], ["second", "second review"], ["disagreements", "disagreements"], ["skipped", "skipped"], ["seeds", "known from seeds"], ["doubtful", "doubtful seeds"]];

class ReviewView {
  constructor(place, query, app) {
    this.app = app;
    this.model = sided(app.model);
    this.order = query.order ?? "queue";
    this.mode = query.mode ?? "first";
    this.kind = query.kind ?? "";
    this.assigned = query.assigned ?? "";
    this.waiting = [];
    this.last = null;
    this.place = el("div", { class: "review-place" });
    this.progress = el("p", { class: "lead", id: "review-progress" });
    this.progressBar = el("div", { class: "review-bar" });
    this.spoken = el("p", { class: "hidden-text", role: "status", id: "review-spoken" });
    this.who = el("div", { class: "row" });
    replace(place, viewHead("Review", this.who), el("details", { class: "review-settings", open: !matchMedia("(max-width: 44rem)").matches }, el("summary", {}, "Which entries"), el("div", { class: "fields" },
      field("Order", select(ORDERS, this.order, (value) => this.change("order", value), { id: "review-order" })),
      field("Entries", select(MODES, this.mode, (value) => this.change("mode", value), { id: "review-mode" })),
      field("Kind", select([["", "all kinds"], ...kinds], this.kind, (value) => this.change("kind", value), { id: "review-kind" })),
      field("Whose", select([["", "everybody's"], ["mine", "assigned to me"]], this.assigned, (value) => this.change("assigned", value), { id: "review-assigned" })),
      el("div", { class: "grow review-progress" }, this.progress, this.progressBar))), this.place, this.spoken);
    this.reviewer = reviewerName();
    if (this.reviewer) this.begin();
    else this.askName();
  }

  askName() {
    this.card?.stopKeys();
    replace(this.who);
    replace(this.place, card("Who reviews?", reviewerForm((name) => { this.reviewer = name; this.begin(); })));
    this.place.querySelector("input").focus();
  }

  change(name, value) {
    this[name] = value;
    rememberSettings("review", { order: this.order === "queue" ? "" : this.order, mode: this.mode === "first" ? "" : this.mode, kind: this.kind, assigned: this.assigned });
    if (this.reviewer) this.begin();
  }

  async begin() {
    replace(this.who, el("span", { class: "hint" }, "Reviewer: ", wordOf(this.reviewer)), button("Change name", () => this.askName(), { class: "quiet small", id: "change-name" }));
    this.waiting = [];
    try {
      await this.fetchMore();
      await this.waitForEntries();
      if (!this.gone) this.next();
    } catch (error) {
      warn(error);
    }
  }

  /** Right after a start the table is still being filled: an empty queue then means "not yet". */
  async waitForEntries() {
    while (!this.waiting.length && !this.gone && !sided(this.app.model).entries?.complete) {
      replace(this.place, el("p", { class: "lead", role: "status" }, "The queue is being prepared…"));
      await new Promise((resolve) => { setTimeout(resolve, PREPARING_POLL_MS); });
      await this.app.refresh();
      await this.fetchMore();
    }
  }

  /** Fetches entries until enough are held; the one in sight and those held are not sent again. */
  async fetchMore() {
    const held = [this.item, ...this.waiting].filter(Boolean).map(({ source }) => ["exclude", source]);
    const parameters = new URLSearchParams([["reviewer", this.reviewer], ["order", this.order], ["mode", this.mode], ["kind", this.kind], ["assignee", this.assigned ? this.reviewer : ""], ["count", AHEAD], ...held]);
    const settings = this.settings();
    const answer = await api.get(`review/next?${parameters}`);
    if (settings !== this.settings()) return;
    const known = new Set([this.item, ...this.waiting].filter(Boolean).map(({ source }) => source));
    this.waiting.push(...answer.items.filter(({ source }) => !known.has(source)));
    this.count(answer);
  }

  settings() {
    return [this.order, this.mode, this.kind, this.assigned, this.reviewer].join("\n");
  }

  count({ decided, left }) {
    this.progress.textContent = `${count(decided)} decided · ${count(left)} left`;
    replace(this.progressBar, bar(decided + left ? decided / (decided + left) : 0), el("span", { class: "hint" }, percent(decided + left ? decided / (decided + left) : 0, 1)));
  }

  next() {
    this.item = this.waiting.shift() ?? null;
    if (!this.item) {
      this.finished();
      return;
    }
    this.draw(this.item);
    if (this.waiting.length < AHEAD - 1) this.fetchMore().catch(warn);
  }

  draw(item, { accepted = [], rejected = [], unsure = [], note = "" } = {}) {
    this.card?.stopKeys();
    this.item = item;
    this.card = new DecisionCard({
      item, chosen: accepted, rejected, unsure, note, languages: [this.model.source, this.model.target], complete: completer(opposite()), isKnown: inVocabulary(opposite()),
      actions: {
        save: (verdicts, text) => this.decide(verdicts.accepted.length ? "accept" : "skip", verdicts, text),
        none: (text) => this.decide("none", { accepted: [] }, text),
        skip: () => this.settle(api.post("review/skip", { source: item.source, reviewer: this.reviewer }), "skipped"),
        undo: () => this.undo(),
        why: (word) => whyPanel(...oriented(item.source, word), this.app.model),
      },
    });
    if (this.model.corpus) this.card.side.append(examplesPanel(item.source, item.candidates[0]?.word ?? "", this.model, this.reviewer));
    replace(this.place, this.card.element, this.last && this.lastLine());
    this.card.focus();
  }

  lastLine() {
    const { decision, verb } = this.last;
    return el("p", { class: "hint", id: "last-decision" }, "Last: ", el("a", { href: link("entry", { source: decision.source }) }, wordOf(decision.source)), ` ${verb} `,
      decision.accepted.flatMap((word, index) => [index ? ", " : "", wordOf(word)]));
  }

  async decide(verdict, verdicts, note) {
    const { source, candidates } = this.item;
    await this.settle(api.post("review/decide", {
      source, reviewer: this.reviewer, verdict, ...verdicts, note, candidates: candidates.slice(0, 9).map(({ word }) => word), kind: this.mode === "disagreements" ? "resolution" : "review",
    }), { accept: "→", none: "has no right candidate", skip: "stays in the queue" }[verdict]);
  }

  /** Waits until the server has the decision on disk, then shows the next entry, which is already here. */
  async settle(request, verb) {
    const answer = await request;
    clearWarnings();
    this.last = { decision: answer.decision, verb };
    this.count(answer);
    this.spoken.textContent = `${plain(answer.decision.source)} ${verb} ${answer.decision.accepted.map((word) => plain(word)).join(", ")}`;
    if (!this.waiting.length) {
      this.item = null;
      await this.fetchMore();
    }
    this.next();
  }

  async undo() {
    const { undone, item, ...counts } = await api.post("review/undo", { reviewer: this.reviewer });
    clearWarnings();
    this.waiting = [this.item, ...this.waiting].filter((other) => other && other.source !== item.source);
    this.last = null;
    this.count(counts);
    this.spoken.textContent = `Undone: ${plain(undone.source)}`;
    this.draw(item, { ...undone, rejected: undone.verdict === "none" ? [] : undone.rejected });
  }

  finished() {
    this.card?.stopKeys();
    this.card = { stopKeys: shortcuts({ u: () => this.undo().catch(warn), "ctrl+z": () => this.undo().catch(warn) }) };
    const heading = el("h2", { tabindex: "-1" }, "Nothing is left here");
    replace(this.place, el("section", { class: "card" }, heading,
      el("p", {}, "Choose other entries or another order above, or continue with ", el("a", { href: link("learn") }, "learning from the decisions"), "."),
      el("div", { class: "row" }, button("Undo the last decision", () => this.undo(), { class: "undo" })), this.last && this.lastLine()));
    heading.focus();
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new ReviewView(place, query, app);
  return { leave: () => { view.gone = true; view.card?.stopKeys(); } };
}
