// One entry: what the model proposes, who decided what, and a decision of one's own.

import { api } from "../lib/api.js";
import { articleForm } from "../lib/article.js";
import { DecisionCard } from "../lib/decision.js";
import { el, replace, select } from "../lib/dom.js";
import { examplesPanel } from "../lib/examples.js";
import { count, time } from "../lib/format.js";
import { shortcuts } from "../lib/keys.js";
import { say } from "../lib/notices.js";
import { card, confidence, kindName, kinds, stats, statusBadge, table, viewHead } from "../lib/parts.js";
import { reviewerForm, reviewerName } from "../lib/reviewer.js";
import { link } from "../lib/router.js";
import { plain, wordOf } from "../lib/words.js";
import { mapCard } from "./map.js";
import { completer, inVocabulary } from "./translate.js";
import { whyPanel } from "./why.js";

const VERDICT = { accept: "accepted", none: "none is right", skip: "skipped" };

function history(entry, model) {
  if (!entry.history.length) return el("p", { class: "empty" }, "Nobody has decided about this entry.");
  return table("Decisions", [["When"], ["Who"], ["Decision"], ["Translations"], ["Note"]], entry.history.map((decision) => [
    time(decision.at), wordOf(decision.reviewer), `${VERDICT[decision.verdict] ?? decision.verdict}${decision.kind === "review" ? "" : ` (${decision.kind})`}${decision.undone ? ", undone" : ""}`,
    decision.accepted.flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang: model.target.code })]), wordOf(decision.note ?? "")]));
}

class EntryView {
  constructor(place, source, app) {
    this.model = app.model;
    this.source = source;
    this.place = place;
    this.load();
  }

  async load({ focus = false } = {}) {
    let entry;
    try {
      entry = await api.get("entry", { source: this.source });
    } catch (error) {
      replace(this.place, viewHead(plain(this.source, 60)), el("p", { class: "lead" }, error.message));
      return;
    }
    this.draw(entry);
    if (focus) this.card?.focus();
  }

  draw(entry) {
    const { model } = this;
    this.card?.stopKeys();
    const decide = el("div", {});
    replace(this.place, viewHead(wordOf(entry.source, { lang: model.source.code }), statusBadge(entry.status), el("a", { href: link("translate", { word: entry.source }) }, "Translate"), el("a", { href: link("table") }, "Dictionary")),
      stats([["Best translation", wordOf(entry.answer ?? entry.target ?? "–", { lang: model.target.code, longest: 30 })], ["Confidence", confidence(entry.confidence)], ["Rank", count(entry.source_rank)],
        ["Kind", this.kindChoice(entry)], ["Mutual", entry.mutual === null ? "not known yet" : entry.mutual ? "yes" : "no"], ["Same spelling", entry.identical ? "yes" : "no"]]),
      this.forms(entry), decide, this.structure(entry), card("Decisions", history(entry, model)), mapCard(entry.source, "forward", model, (point) => {
        location.hash = point.language === "source" ? link("entry", { source: point.word }) : link("translate", { word: point.word, direction: "backward" });
      }));
    this.drawDecision(decide, entry);
  }

  /** The forms of a headword, or the headword of a form. */
  forms(entry) {
    const lang = this.model.source.code;
    const linked = (source) => el("a", { href: link("entry", { source }) }, wordOf(source, { lang }));
    if (entry.headword !== entry.source) return el("p", { class: "lead", id: "entry-forms" }, "A form of ", linked(entry.headword), ". A decision there counts for this form too; one made here is an exception.");
    if (entry.other_forms.length) return el("p", { class: "lead", id: "entry-forms" }, `${entry.other_forms.length === 1 ? "Form" : "Forms"}: `, entry.other_forms.flatMap((form, index) => [index ? ", " : "", linked(form)]), ". A decision counts for all of them.");
    return this.model.lemmas?.source === false ? el("p", { class: "hint", id: "entry-forms" }, `There is no lemmatiser for ${this.model.source.name}: every form is an entry of its own.`) : null;
  }

  /** The structure of the entry and sentences to choose for it. */
  structure(entry) {
    const reviewer = reviewerName();
    if (!reviewer) return null;
    const target = entry.accepted[0] ?? entry.answer ?? entry.target ?? "";
    const form = articleForm({ source: entry.source, article: entry.article, accepted: entry.accepted, languages: [this.model.source, this.model.target], reviewer, onsaved: () => this.load() });
    this.stopKeys?.();
    this.stopKeys = shortcuts({ e: () => form.querySelector("input").focus() });
    return card(["Structure ", el("kbd", { "aria-hidden": "true" }, "e")], form, examplesPanel(entry.source, target, this.model, reviewer, () => this.load()));
  }

  kindChoice(entry) {
    const reviewer = reviewerName();
    if (!reviewer) return kindName(entry.kind);
    return select(kinds, entry.kind, async (kind) => {
      await api.post("entries/mark", { reviewer, kind, sources: [entry.source] });
      say("The kind is changed.");
      await this.load();
    }, { "aria-label": "Kind", id: "entry-kind" });
  }

  drawDecision(place, entry) {
    const reviewer = reviewerName();
    if (!reviewer) {
      replace(place, card("Decide about this entry", reviewerForm(() => this.load({ focus: true }))));
      return;
    }
    const mine = entry.history.find((decision) => decision.reviewer === reviewer && !decision.undone);
    const post = async (verdict, verdicts, note) => {
      await api.post("review/decide", { source: entry.source, reviewer, verdict, ...verdicts, note, candidates: entry.candidates.slice(0, 9).map(({ word }) => word), kind: "review" });
      say("Saved.");
      await this.load({ focus: true });
    };
    this.card = new DecisionCard({
      item: { ...entry, forms: [], notes: [] }, chosen: mine?.accepted ?? [], rejected: mine?.rejected ?? [], unsure: mine?.unsure ?? [], isKnown: inVocabulary("backward"), note: mine?.note ?? "", languages: [this.model.source, this.model.target], complete: completer("backward"),
      actions: {
        save: (verdicts, note) => post(verdicts.accepted.length ? "accept" : "skip", verdicts, note), none: (note) => post("none", { accepted: [] }, note),
        skip: async () => { await api.post("review/skip", { source: entry.source, reviewer }); await this.load({ focus: true }); },
        why: (word) => whyPanel(entry.source, word, this.model),
      },
    });
    replace(place, this.card.element);
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new EntryView(place, query.source ?? "", app);
  return { leave: () => { view.card?.stopKeys(); view.stopKeys?.(); } };
}
