// The neighbourhood of a word as a map: two colours, lines between the pairs.

import { api } from "../lib/api.js";
import { Chart, saveAs } from "../lib/chart.js";
import { button, el, replace } from "../lib/dom.js";
import { score } from "../lib/format.js";
import { card, table } from "../lib/parts.js";
import { plain, wordOf } from "../lib/words.js";

const POINTS = 20;

function fileName(word, suffix) {
  return `map-${plain(word, 40).replace(/[^\p{L}\p{N}_-]+/gu, "_")}.${suffix}`;
}

function pairs(found, model) {
  const byId = new Map(found.points.map((point) => [point.id, point]));
  const known = found.lines.filter(({ from, to }) => byId.has(from) && byId.has(to));
  return el("details", {}, el("summary", {}, "The pairs as a list"),
    table("Pairs of the map", [["Word"], ["Translation"], ["Score", true]], known.map(({ from, to, score: value }) => [
      wordOf(byId.get(from).word, { lang: model[byId.get(from).language]?.code }), wordOf(byId.get(to).word, { lang: model[byId.get(to).language]?.code }), score(value)])));
}

/** A card with the map of a word and its best answer; `onpick` is called with the point that is clicked. */
export function mapCard(word, best, direction, model, onpick) {
  const inside = el("div", { class: "map-inside" }, el("p", { class: "hint" }, "Drawing the neighbourhood…"));
  api.get("map", { word, direction, k: POINTS }).then((found) => {
    const chart = new Chart({ ...found, best, onpick, label: `Map of the words near ${plain(word)}` });
    replace(inside, chart.element,
      el("div", { class: "row map-tools" },
        el("span", { class: "legend source" }, model.source.name ?? "source"), el("span", { class: "legend target" }, model.target.name ?? "target"), el("span", { class: "grow" }),
        button("+", () => chart.zoom(1.4), { "aria-label": "Zoom in", class: "small" }), button("−", () => chart.zoom(1 / 1.4), { "aria-label": "Zoom out", class: "small" }),
        button("Whole map", () => chart.reset(), { class: "small" }),
        button("Save SVG", () => saveAs(chart.asSvg(), fileName(word, "svg")), { class: "small" }),
        button("Save PNG", async () => saveAs(await chart.asPng(), fileName(word, "png")), { class: "small" })),
      pairs(found, model));
  }).catch((error) => replace(inside, el("p", { class: "hint" }, error.message)));
  return card("Neighbourhood", inside);
}
