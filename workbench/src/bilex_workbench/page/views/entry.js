// One entry: what the model proposes, who decided what, and a decision of one's own.

import { api } from "../lib/api.js";
import { articleForm } from "../lib/article.js";
import { DecisionCard } from "../lib/decision.js";
import { direction, opposite, oriented, sided } from "../lib/direction.js";
import { el, replace, select } from "../lib/dom.js";
import { examplesPanel } from "../lib/examples.js";
import { count, percent, time } from "../lib/format.js";
import { shortcuts } from "../lib/keys.js";
import { say } from "../lib/notices.js";
import { card, kindName, kinds, statusBadge, table, viewHead } from "../lib/parts.js";
import { reviewerForm, reviewerName } from "../lib/reviewer.js";
import { link } from "../lib/router.js";
import { plain, wordOf } from "../lib/words.js";
import { mapCard } from "./map.js";
import { completer, inVocabulary } from "./translate.js";
import { whyPanel } from "./why.js";

const VERDICT = { accept: "accepted", none: "none is right", skip: "skipped" };

function history(entry, model) {
  if (!entry.history.length) return el("p", { class: "hint" }, "Nobody has decided about this entry yet; decide above.");
  return table("Decisions", [["When"], ["Who"], ["Decision"], ["Translations"], ["Note"]], entry.history.map((decision) => [
    time(decision.at), wordOf(decision.reviewer), `${VERDICT[decision.verdict] ?? decision.verdict}${decision.kind === "review" ? "" : ` (${decision.kind})`}${decision.undone ? ", undone" : ""}`,
    decision.accepted.flatMap((word, index) => [index ? ", " : "", wordOf(word, { lang: model.target.code })]), wordOf(decision.note ?? "")]));
}

/** The entry as a printed dictionary would have it: part of speech, senses with glosses and labels, translations, examples. */
function typeset(entry, model) {
  const { article } = entry;
  const [from, to] = [model.source.code, model.target.code];
  const usage = (labels) => (labels.length ? el("span", { class: "usage" }, `${labels.join(", ")} `) : null);
  const one = ({ target, comment, labels }, index) => [index ? ", " : "", usage(labels), wordOf(target, { lang: to }), comment ? el("span", { class: "gloss-text" }, ` (${comment})`) : null];
  const senses = article.senses.length ? article.senses : [{ gloss: "", labels: [], translations: entry.accepted.map((target) => ({ target, comment: "", labels: [] })), examples: [] }];
  const shown = senses.filter((sense) => sense.gloss || sense.translations.length || sense.examples.length);
  if (!shown.length && !article.part_of_speech) return null;
  return el("section", { class: "typeset", id: "typeset", "aria-label": "The entry as published" }, article.part_of_speech ? el("span", { class: "speech" }, article.part_of_speech) : null,
    el("ol", {}, shown.map((sense) => el("li", {}, usage(sense.labels), sense.gloss ? el("span", { class: "gloss-text" }, `${sense.gloss}: `) : null, sense.translations.flatMap(one),
      sense.examples.map((example) => el("p", { class: "sentence" }, el("bdi", { lang: from, dir: "auto" }, plain(example.source, 400)), example.target ? [" — ", el("bdi", { lang: to, dir: "auto" }, plain(example.target, 400))] : null))))));
}

class EntryView {
  constructor(place, source, app) {
    this.all = app.model;
    this.model = sided(app.model);
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
    replace(this.place, viewHead(wordOf(entry.source, { lang: model.source.code, className: "headword" }), statusBadge(entry.status), el("a", { href: link("translate", { word: entry.source }) }, "Translate"), el("a", { href: link("table") }, "Dictionary")),
      typeset(entry, model), el("div", { class: "entry-facts hint" }, this.kindChoice(entry), el("span", {}, `rank ${count(entry.source_rank)}`), el("span", {}, `confidence ${percent(entry.confidence)}`),
        entry.known ? el("span", {}, "from the seeds") : null, entry.mutual === null ? null : el("span", {}, entry.mutual ? "best in both directions" : "not best in the other direction"), entry.identical ? el("span", {}, "same spelling") : null),
      this.forms(entry), decide, this.structure(entry), card("Decisions", history(entry, model)), mapCard(entry.source, entry.candidates[0]?.word ?? null, direction(), this.all, (point) => {
        location.hash = link("entry", { source: point.word, direction: point.language === "source" ? "forward" : "backward" });
      }));
    this.drawDecision(decide, entry);
  }

  /** The forms of a headword, or the headword of a form. */
  forms(entry) {
    const lang = this.model.source.code;
    const linked = (source) => el("a", { href: link("entry", { source }) }, wordOf(source, { lang }));
    if (entry.headword !== entry.source) return el("p", { class: "lead", id: "entry-forms" }, "A form of ", linked(entry.headword), ". A decision there counts for this form too; one made here is an exception.");
    if (entry.other_forms.length) return el("p", { class: "lead", id: "entry-forms" }, `${entry.other_forms.length === 1 ? "Form" : "Forms"}: `, entry.other_forms.flatMap((form, index) => [index ? ", " : "", linked(form)]), ". A decision counts for all of them.");
    return this.model.lemmas?.source === false ? el("p", { class: "hint", id: "entry-forms" }, `There is no lemmatiser for ${this.model.source.name}: every form is a separate entry.`) : null;
  }

  /** The structure of the entry as a form. */
  structure(entry) {
    const reviewer = reviewerName();
    if (!reviewer) return null;
    const form = articleForm({ source: entry.source, article: entry.article, accepted: entry.accepted, languages: [this.model.source, this.model.target], reviewer, onsaved: () => this.load() });
    this.stopKeys?.();
    this.stopKeys = shortcuts({ e: () => form.querySelector("input").focus() });
    return card(["Structure ", el("kbd", { "aria-hidden": "true" }, "e")], form);
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
      title: "Your decision", item: { ...entry, forms: [], notes: [] }, chosen: mine?.accepted ?? [], rejected: mine?.rejected ?? [], unsure: mine?.unsure ?? [], isKnown: inVocabulary(opposite()), note: mine?.note ?? "", languages: [this.model.source, this.model.target], complete: completer(opposite()),
      actions: {
        save: (verdicts, note) => post(verdicts.accepted.length ? "accept" : "skip", verdicts, note), none: (note) => post("none", { accepted: [] }, note),
        skip: async () => { await api.post("review/skip", { source: entry.source, reviewer }); await this.load({ focus: true }); },
        why: (word) => whyPanel(...oriented(entry.source, word), this.all),
      },
    });
    const target = entry.accepted[0] ?? entry.answer ?? entry.target ?? "";
    if (this.model.corpus) this.card.side.append(examplesPanel(entry.source, target, this.model, reviewer, () => this.load()));
    replace(place, this.card.element);
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new EntryView(place, query.source ?? "", app);
  return { leave: () => { view.card?.stopKeys(); view.stopKeys?.(); } };
}
