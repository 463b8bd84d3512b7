// Translate a word as one types, both ways, with why and a map of its neighbourhood.

import { api } from "../lib/api.js";
import { combobox } from "../lib/combobox.js";
import { button, debounce, el, replace, select } from "../lib/dom.js";
import { count, score } from "../lib/format.js";
import { shortcuts } from "../lib/keys.js";
import { warn } from "../lib/notices.js";
import { confidence, viewHead } from "../lib/parts.js";
import { link, rememberSettings } from "../lib/router.js";
import { wordOf } from "../lib/words.js";
import { mapCard } from "./map.js";
import { whyPanel } from "./why.js";

const PAUSE_MS = 90;
const MAP_PAUSE_MS = 250;
const LISTED = 10;
const ORIGINS = { composed: "composed of its words", subwords: "not in the vocabulary; vector built from its subwords" };

/** Completion from one language's vocabulary: words that begin so, and close spellings of unknown ones. */
export function completer(direction) {
  return async (text, signal) => {
    const { completions, spellings } = await api.get("suggest", { word: text.slice(0, 200), direction, k: 8 }, signal);
    return [...completions.map((word) => ({ word })), ...spellings.filter((word) => !completions.includes(word)).map((word) => ({ word, note: "similar spelling" }))];
  };
}

/** Whether a language's vocabulary has a word. */
export function inVocabulary(direction) {
  return async (word) => (await api.get("suggest", { word: word.slice(0, 1000), direction, k: 1 })).known;
}

class TranslateView {
  constructor(place, query, app) {
    this.model = app.model;
    this.word = query.word ?? "";
    this.direction = query.direction === "backward" ? "backward" : "forward";
    this.retrieval = query.retrieval === "nn" ? "nn" : "csls";
    this.answer = el("div", { class: "answer", id: "answer", "aria-live": "polite" });
    this.side = el("div", { class: "map-place" });
    this.searchPlace = el("div", { class: "search-place" });
    this.swap = button("", () => this.turn(), { id: "direction" });
    replace(place, viewHead("Translate"), el("div", { class: "card search-card" },
      el("div", { class: "row search-row" }, this.searchPlace, this.swap,
        select([["csls", "CSLS"], ["nn", "nearest neighbour"]], this.retrieval, (value) => { this.retrieval = value; this.lookUp(); }, { "aria-label": "Retrieval", id: "retrieval" }))),
    el("div", { class: "translate-columns" }, el("div", { class: "card" }, this.answer), this.side));
    this.stopKeys = shortcuts({ "/": () => { this.search.input.focus(); this.search.input.select(); } });
    this.later = debounce(() => this.lookUp(), PAUSE_MS);
    this.drawSearch();
    this.lookUp();
  }

  get sides() {
    const { source, target } = this.model;
    return this.direction === "forward" ? [source, target] : [target, source];
  }

  drawSearch() {
    const [from, to] = this.sides;
    const names = [from.name ?? "source", to.name ?? "target"];
    this.search = combobox({
      label: `Word in ${names[0]}`, value: this.word, id: "word", lang: from.code, placeholder: `A word in ${names[0]}`, complete: completer(this.direction),
      oninput: (text) => { this.word = text.trim(); this.later(); },
      onpick: (word) => { this.word = word; this.lookUp(); },
    });
    replace(this.searchPlace, this.search.element);
    replace(this.swap, el("span", { class: "hidden-text" }, "Change direction: "), `${names[0]} → ${names[1]}`);
  }

  turn() {
    const best = this.first;
    this.direction = this.direction === "forward" ? "backward" : "forward";
    if (best) this.word = best;
    this.drawSearch();
    this.lookUp();
  }

  show(word) {
    this.word = word;
    this.search.input.value = word;
    this.lookUp();
  }

  async lookUp() {
    const { word, direction, retrieval } = this;
    rememberSettings("translate", { word, direction, retrieval: retrieval === "csls" ? "" : retrieval });
    this.running?.abort();
    clearTimeout(this.mapTimer);
    this.first = null;
    if (!word) {
      replace(this.answer, el("div", { class: "empty" }, el("p", {}, "Type a word; its translations appear as you type. To finish the dictionary, review its entries."), el("a", { class: "button", href: link("review") }, "Begin the review")));
      replace(this.side);
      return;
    }
    this.running = new AbortController();
    try {
      const found = await api.get("translate", { word, direction, k: LISTED, retrieval }, this.running.signal);
      this.first = found.translations[0]?.word ?? null;
      this.drawAnswer(found);
    } catch (error) {
      warn(error);
    }
  }

  drawAnswer(found) {
    const [from, to] = this.sides;
    if (found.origin === null) {
      replace(this.answer, el("p", {}, wordOf(found.word, { lang: from.code }), " is not in the vocabulary. ", found.suggestions.length ? "Closest spellings:" : "No known word is spelt like it."),
        el("div", { class: "row" }, found.suggestions.map((word) => button(wordOf(word, { lang: from.code }), () => this.show(word), { class: "suggestion" }))));
      replace(this.side);
      return;
    }
    const about = [found.rank ? `rank ${count(found.rank)}` : "", found.origin === "vocabulary" ? "" : ORIGINS[found.origin] ?? `vector from ${found.origin}`].filter(Boolean).join(" · ");
    replace(this.answer,
      el("p", { class: "query-line" }, wordOf(found.word, { lang: from.code, className: "query-word" }), " ", el("small", {}, about), " ",
        found.rank ? el("a", { href: link("entry", { source: found.word, direction: this.direction }) }, "Open the entry") : null),
      el("ol", { class: "translations" }, found.translations.map((translation, index) => this.row(found.word, translation, index, to))));
    clearTimeout(this.mapTimer);
    if (found.rank) this.mapTimer = setTimeout(() => this.drawMap(found.word), MAP_PAUSE_MS);
    else replace(this.side);
  }

  row(word, translation, index, to) {
    const details = el("div", { hidden: true, class: "why-place" });
    const [source, target] = this.direction === "forward" ? [word, translation.word] : [translation.word, word];
    const why = button("Why", () => {
      if (!details.firstChild) details.append(whyPanel(source, target, this.model));
      details.hidden = !details.hidden;
      why.setAttribute("aria-expanded", String(!details.hidden));
    }, { class: "small quiet why-button", "aria-expanded": "false" });
    why.append(el("span", { class: "hidden-text" }, " ", wordOf(translation.word)));
    const facts = `score ${score(translation.score)}${translation.rank ? ` · rank ${count(translation.rank)}` : ""}`;
    return el("li", { class: "translation" },
      el("span", { class: "place" }, `${index + 1}.`), el("div", { class: "what" }, wordOf(translation.word, { lang: to.code, className: "answer-word" }), el("small", { class: "facts" }, facts)),
      translation.known ? el("span", { class: "badge good" }, "known") : el("span", {}),
      confidence(translation.confidence), why, details);
  }

  drawMap(word) {
    replace(this.side, mapCard(word, this.first, this.direction, this.model, (point) => {
      this.direction = point.language === "source" ? "forward" : "backward";
      this.drawSearch();
      this.show(point.word);
    }));
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new TranslateView(place, query, app);
  if (!view.word) view.search.input.focus();
  return { leave: () => { view.stopKeys(); view.running?.abort(); clearTimeout(view.mapTimer); } };
}
