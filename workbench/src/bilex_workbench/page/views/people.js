// People: who decided how much, how well they agree, and where they do not.

import { api } from "../lib/api.js";
import { opinions } from "../lib/decision.js";
import { sided } from "../lib/direction.js";
import { button, el, replace } from "../lib/dom.js";
import { count, percent, range, time } from "../lib/format.js";
import { say, warn } from "../lib/notices.js";
import { bar, card, empty, stats, table, viewHead } from "../lib/parts.js";
import { reviewerForm, reviewerName } from "../lib/reviewer.js";
import { link } from "../lib/router.js";
import { plain, wordOf } from "../lib/words.js";

const PAGE = 20;
const kappa = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));

function agreementCard({ pairs, overall }) {
  return card("Agreement", el("p", { class: "hint" }, "Cohen's κ on whether the model's best translation is right: 1 is full agreement, 0 what random answers would give."),
    overall?.entries ? stats([["κ", kappa(overall.kappa)], ["Same answer", percent(overall.share)], ["Entries reviewed twice", count(overall.entries)]]) : empty("No entry was reviewed by two people yet.", "review", { mode: "second" }, "Give second opinions"),
    pairs.length ? table("Agreement of pairs of reviewers", [["Reviewers"], ["Entries", true], ["Same answer", true], ["κ", true]], pairs.map((pair) => [
      [wordOf(pair.reviewers[0]), " and ", wordOf(pair.reviewers[1])], count(pair.entries), percent(pair.share), kappa(pair.kappa)])) : null);
}

function statusCard(status) {
  return card("Progress", stats([["Accepted", count(status.accepted)], ["Corrected", count(status.corrected)], ["Rejected", count(status.rejected)], ["Skipped", count(status.skipped)], ["Not reviewed", count(status.unreviewed)], ["Reviewed twice", count(status.twice)]]),
    table("Progress by frequency", [["Ranks"], ["Decided", true], ["Entries", true], ["Share"]], status.by_band.map(({ band, total, decided }) => [range(band), count(decided), count(total), bar(total ? decided / total : 0)])));
}

function reviewersCard(reviewers) {
  return card("Reviewers", reviewers.length ? table("Progress of each person", [["Name"], ["Decisions", true], ["Accepted", true], ["Rejected", true], ["Assigned", true], ["Done"], ["Last"]], reviewers.map(({ name, decisions, accepted, rejected, assigned, done, last }) => [
    el("a", { href: link("table", { reviewer: name }) }, wordOf(name), el("span", { class: "hidden-text" }, ": entries")), count(decisions), count(accepted), count(rejected), count(assigned),
    assigned ? [bar(done / assigned), el("small", {}, `${count(done)} of ${count(assigned)}`)] : "–", last ? time(last) : ""])) : empty("Nobody has reviewed yet.", "review", {}, "Start the review"));
}

class PeopleView {
  constructor(place, app) {
    this.model = sided(app.model);
    this.disagreements = el("div", { class: "disagreements" });
    this.rest = el("div", { class: "columns" });
    this.people = el("div", {});
    replace(place, viewHead("People"), this.rest, this.people, this.disagreements);
    this.load();
  }

  async load() {
    try {
      const [status, { reviewers }, agreement] = await Promise.all([api.get("review/status"), api.get("review/reviewers"), api.get("review/agreement")]);
      replace(this.rest, statusCard(status), agreementCard(agreement));
      replace(this.people, reviewersCard(reviewers));
      await this.loadDisagreements();
    } catch (error) {
      warn(error);
    }
  }

  async loadDisagreements() {
    const { total, rows } = await api.get("review/disagreements", { offset: 0, limit: PAGE });
    replace(this.disagreements, card(`Disagreements (${count(total)})`, total
      ? el("ul", { class: "stack", id: "disagreements" }, rows.map((row) => this.row(row)))
      : empty("Nobody disagrees. Second opinions show where entries are doubtful.", "review", { mode: "second" }, "Give second opinions"),
    total > rows.length ? el("p", { class: "hint" }, `The first ${rows.length} of ${count(total)}.`) : null,
    total ? el("div", { class: "row" }, el("a", { href: link("review", { mode: "disagreements" }) }, "Settle them in Review")) : null));
  }

  row({ source, decisions }) {
    const standing = decisions.filter((decision) => !decision.undone && decision.verdict !== "skip");
    return el("li", { class: "disagreement" }, el("h3", {}, el("a", { href: link("entry", { source }) }, wordOf(source, { lang: this.model.source.code }))),
      opinions(standing, this.model.target.code, (decision) => button(["Choose this", el("span", { class: "hidden-text" }, `, the answer of ${plain(decision.reviewer, 80)}`)], () => this.settle(source, decision), { class: "small settle" })));
  }

  async settle(source, decision) {
    const reviewer = reviewerName();
    if (!reviewer) {
      replace(this.disagreements, card("Your name", reviewerForm(() => this.loadDisagreements().catch(warn))));
      return;
    }
    try {
      await api.post("review/decide", { source, reviewer, verdict: decision.verdict, accepted: decision.accepted, candidates: decision.candidates, note: "", kind: "resolution" });
      say(`Settled: ${plain(source)}`);
      await this.load();
      (this.disagreements.querySelector(".settle") ?? this.disagreements.querySelector("h2")).focus();
    } catch (error) {
      warn(error);
    }
  }
}

/** Shows the view. */
export function show(place, query, app) {
  new PeopleView(place, app);
  return {};
}
