// Why a pair was proposed: the neighbours of both words in both languages, one part for each view of the model.

import { api } from "../lib/api.js";
import { el, replace } from "../lib/dom.js";
import { count, percent, score } from "../lib/format.js";
import { confidence, stats } from "../lib/parts.js";
import { wordOf } from "../lib/words.js";

const VIEWS = { vectors: "Word vectors", "language model": "Language model", "vectors and language model": "Word vectors and language model" };

function neighbours(heading, words, marked, lang) {
  return el("div", {}, el("h4", {}, heading), el("ol", { class: "neighbours" }, words.map(({ word, similarity }) => el("li", { class: word === marked ? "marked" : null },
    wordOf(word, { lang }), el("span", { class: "number" }, score(similarity))))));
}

function viewPart(view, found, { source, target }) {
  const [from, to] = [source.name ?? "source", target.name ?? "target"];
  return el("div", { class: "why-view" },
    el("h3", {}, VIEWS[view.name], el("small", {}, ` similarity ${score(view.similarity)}`)),
    el("div", { class: "why-lists" },
      neighbours(`${from} words near the source word`, view.source_neighbours, null, source.code),
      neighbours(`${to} words near the source word`, view.source_candidates, found.target.word, target.code),
      neighbours(`${to} words near the translation`, view.target_neighbours, null, target.code),
      neighbours(`${from} words near the translation`, view.target_candidates, found.source.word, source.code)));
}

function place(rank) {
  return rank === null ? "beyond 100" : `${count(rank)}.`;
}

/** A panel about a pair, filled when the server has answered. */
export function whyPanel(source, target, model) {
  const panel = el("div", { class: "why", "aria-live": "polite" }, el("p", { class: "hint" }, "Looking up the neighbours…"));
  api.get("why", { source, target, k: 8 }).then((found) => replace(panel,
    stats([
      ["Score", score(found.score)],
      ["Similarity", score(found.similarity)],
      ["Confidence", found.confidence === null ? percent(null) : confidence(found.confidence)],
      ["Rank of the translation", place(found.rank_of_target)],
      ["Rank in the other direction", place(found.rank_of_source)],
    ]),
    el("p", { class: "hint" }, found.known ? "A seed or a decision gives this pair. " : "", found.mutual ? "Each word is the other's first translation." : "The two words are not each other's first translation."),
    found.views.map((view) => viewPart(view, found, model))))
    .catch((error) => replace(panel, el("p", { class: "hint" }, error.message)));
  return panel;
}
