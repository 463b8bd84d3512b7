// Learn: retrain with what was decided, follow it, compare, keep or discard.

import { api } from "../lib/api.js";
import { button, debounce, el, field, replace } from "../lib/dom.js";
import { bytes, count, counted, duration, percent, time } from "../lib/format.js";
import { JobCard } from "../lib/job.js";
import { say, warn } from "../lib/notices.js";
import { card, empty, stats, table, viewHead } from "../lib/parts.js";
import { link } from "../lib/router.js";
import { VirtualTable } from "../lib/virtual.js";
import { plain, wordOf } from "../lib/words.js";

const ROW_HEIGHT = 36;
const VERDICTS = {
  better: ["good", "Better on words that it did not learn from."],
  worse: ["bad", "Worse on words that it did not learn from: discard it."],
  "too few to tell": ["unsure", "Too few held-out words to tell whether it is better; more decisions help."],
};

class LearnView {
  constructor(place, app) {
    this.app = app;
    this.inside = el("div", { class: "learn-place" });
    replace(place, viewHead("Learn"), el("p", { class: "lead" },
      "Accepted pairs become known translations, and rejected pairs are never answers. From 500 newly accepted words on, the model is also fitted again, so that other words can improve. Nothing changes until you keep the result."), this.inside);
    this.load();
  }

  async load() {
    try {
      const [{ job }, { waiting }] = await Promise.all([api.get("job"), api.get("learn")]);
      if (job?.state === "running") this.follow(job);
      else if (waiting) this.compare(waiting);
      else await this.offer(job?.kind === "learn" ? job : null);
    } catch (error) {
      warn(error);
    }
  }

  async offer(last) {
    const [status, estimate, models] = await Promise.all([api.get("review/status"), api.get("learn/estimate"), api.get("models")]);
    if (!status.decisions) {
      replace(this.inside, card("Nothing to learn from yet", empty("The model learns from what people decide.", "review", {}, "Start the review")), this.modelsCard(models));
      return;
    }
    const part = el("input", { type: "number", min: 0, max: 50, value: 10, required: true });
    replace(this.inside, last && last.state !== "done" ? el("p", { class: `badge ${last.state === "failed" ? "bad" : "unsure"}`, id: "last-job" }, last.state === "failed" ? last.detail ?? "The last retraining failed." : "The last retraining was cancelled.") : null,
      card("Decisions so far", stats([["Accepted", count(status.accepted)], ["Corrected", count(status.corrected)], ["Rejected", count(status.rejected)], ["Not reviewed", count(status.unreviewed)]])),
      card("Retrain", el("p", { id: "learn-estimate" }, estimate.sentence), el("form", {
        class: "fields",
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            const { job } = await api.post("learn", { held_out: Number(part.value) / 100 });
            this.follow(job);
          } catch (error) {
            warn(error);
          }
        },
      }, field("Held out to compare (%)", part, "Decisions that are not learned from."),
      el("button", { type: "submit", class: "primary", id: "learn-start" }, "Learn from the decisions"))), this.modelsCard(models));
  }

  /** The current model and the earlier ones, each with a button to restore it. */
  modelsCard({ current, earlier, kept }) {
    const accuracy = (found) => (found ? `${percent(found.share, 1)} (${percent(found.low)}–${percent(found.high)})` : "–");
    const row = (model, why, action) => [model.made ? time(model.made) : "–", count(model.learned_pairs), accuracy(model.accuracy), bytes(model.bytes), why, action];
    return card("Models", el("p", { class: "hint" }, `The ${counted(kept, "model")} before the current one are kept. Decisions stay when a model is restored, and the current model is kept as well.`),
      table("Models", [["Made"], ["Decisions learned from", true], ["Held-out accuracy (95 % interval)"], ["Size", true], ["Replaced"], ["Restore"]],
        [row(current, "in use", ""), ...earlier.map((model) => row(model, [model.replaced ? `${time(model.replaced)}: ` : "", model.reason],
          button(["Restore", el("span", { class: "hidden-text" }, ` the model made ${model.made ? time(model.made) : "earlier"}`)], () => this.restore(model), { class: "small restore" })))]),
      earlier.length ? null : el("p", { class: "hint" }, "There is no earlier model yet; when you keep a retrained one, the current one moves here."));
  }

  async restore({ number, made }) {
    if (!confirm(`Use the model made ${made ? time(made) : "earlier"} again?`)) return;
    try {
      await api.post("models/restore", { number });
      await this.app.refreshUntilOpen();
      say("The earlier model is in use again.");
      await this.load();
    } catch (error) {
      warn(error);
    }
  }

  follow(job) {
    this.stopParts();
    this.job = new JobCard(job, async (ended) => {
      if (ended.state === "failed") warn(ended.detail ?? "The retraining failed.");
      else say(ended.state === "cancelled" ? "Cancelled; nothing was changed." : "The retraining is finished.");
      await this.load();
    });
    replace(this.inside, this.job.element);
  }

  compare(found) {
    const { held_out: held, learned_from: from } = found;
    const { source, target } = this.app.model;
    let search = "";
    this.table = new VirtualTable({
      id: "changes", label: "Changed entries", rowHeight: ROW_HEIGHT, onerror: warn, onsort: () => {}, onopen: () => {},
      fetchPage: (offset, limit, signal) => api.get("learn/changes", { offset, limit, q: search }, signal),
      columns: [
        { name: "source", heading: source.name ?? "Source", cell: (row) => wordOf(row.source, { lang: source.code }) },
        { name: "before", heading: "Before", cell: (row) => [wordOf(row.before, { lang: target.code }), el("small", {}, ` ${percent(row.confidence_before)}`)] },
        { name: "after", heading: "After", cell: (row) => [wordOf(row.after, { lang: target.code }), el("small", {}, ` ${percent(row.confidence_after)}`)] },
        { name: "reason", heading: "Why", width: "minmax(0, 2.5fr)", cell: (row) => el("span", { title: plain(row.reason, 400) }, wordOf(row.reason)) },
        { name: "decided", heading: "Decided", cell: (row) => (row.decided ?? []).flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang: target.code })]) },
      ],
    });
    const worse = held?.verdict === "worse";
    const [tone, verdict] = found.refinement?.refitted === false ? ["good", "The decided words are right from now on; no other word is touched."] : VERDICTS[held?.verdict] ?? VERDICTS["too few to tell"];
    const range = (interval) => (interval ? el("small", {}, ` ${percent(interval[0])}–${percent(interval[1])}`) : "");
    const keep = button("Keep the new model", () => this.keep(), { class: worse ? "" : "primary", id: "learn-keep" });
    const discard = button("Discard it", () => this.discard(), { class: worse ? "primary" : "danger", id: "learn-discard" });
    replace(this.inside, card("Before and after", el("p", { class: `badge ${tone}`, id: "learn-verdict" }, verdict), stats([
      ["Held-out accuracy before", [percent(held?.before, 1), range(held?.before_interval)]], ["Held-out accuracy after", [percent(held?.after, 1), range(held?.after_interval)]], ["Held-out words", count(held?.words ?? 0)],
      ["Newly right, newly wrong", `${count(held?.gained ?? 0)}, ${count(held?.lost ?? 0)}`],
      ["Changed entries", `${count(found.changed)} of ${count(found.compared)}`], ["Duration", duration(found.seconds)],
    ]), found.refinement?.note ? el("p", { id: "learn-note" }, found.refinement.note) : null,
    el("p", { class: "hint" }, `Learned from ${count(from.seeds)} seeds, ${count(from.accepted)} accepted and ${count(from.rejected)} rejected pairs. Decisions stay, whether you keep or discard.`),
    el("div", { class: "row" }, worse ? [discard, keep] : [keep, discard])),
    card("Changed entries", field("Search", el("input", { type: "search", dir: "auto", oninput: debounce((event) => { search = event.target.value.trim(); this.table.reload(); }, 200) })), this.table.element));
    this.table.reload();
  }

  async keep() {
    try {
      await api.post("learn/keep");
      await this.app.refreshUntilOpen();
      say("The new model is in use.");
      replace(this.inside, card("Kept", el("p", {}, "The new model is in use; the earlier one can be restored in Learn."), el("div", { class: "row" }, el("a", { href: link("table") }, "To the dictionary"), el("a", { href: link("review") }, "Continue the review"))));
      this.inside.querySelector("a").focus();
    } catch (error) {
      warn(error);
    }
  }

  async discard() {
    try {
      await api.post("learn/discard");
      say("Discarded; the model is as it was.");
      await this.load();
    } catch (error) {
      warn(error);
    }
  }

  stopParts() {
    this.job?.stop();
    this.table?.stop();
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new LearnView(place, app);
  return { leave: () => view.stopParts() };
}
