// Example sentences beside an entry: three per language, or three pairs of a parallel text, each to be chosen into the entry.

import { api } from "./api.js";
import { button, el, replace } from "./dom.js";
import { say, warn } from "./notices.js";
import { cut, plain } from "./words.js";

const LONGEST = 400;

/** A sentence with the places of the words marked; the places count characters, not halves of them. */
function sentence({ text, marks }, lang) {
  const characters = Array.from(text);
  const made = el("bdi", { class: "sentence", lang, dir: "auto" });
  let last = 0;
  for (const [from, to] of marks) {
    made.append(plain(characters.slice(last, from).join(""), LONGEST), el("mark", {}, plain(characters.slice(from, to).join(""))));
    last = to;
  }
  made.append(plain(cut(characters.slice(last).join(""), LONGEST), LONGEST));
  return made;
}

/**
 * The examples of a word and its translation, filled when the server has answered; nothing without a corpus.
 *
 * @param onchoose called with the new article when a sentence was chosen.
 */
export function examplesPanel(source, target, model, reviewer, onchoose = () => {}) {
  const place = el("div", { class: "examples" });
  if (!model.corpus) return place;
  const choose = (example) => async (made) => {
    try {
      const { article } = await api.post("entry/example", { source, reviewer, target: target || source, example });
      made.textContent = "In the entry";
      say("The example is in the entry.");
      onchoose(article);
    } catch (error) {
      warn(error);
    }
  };
  const line = (found) => el("li", {}, el("div", { class: "grow" }, ["source", "target"].filter((side) => found[side]).map((side) => el("p", { class: side }, sentence(found[side], model[side].code)))),
    reviewer ? button("Choose", choose({ source: found.source?.text ?? "", target: found.target?.text ?? "" }), { class: "small choose-example" }) : null);
  const list = (label, rows) => (rows.length ? [el("h3", {}, label), el("ul", {}, rows.map(line))] : null);
  api.get("examples", { source, target }).then((found) => {
    const alone = ["source", "target"].filter(() => !found.parallel.length).map((side) => list(`Examples in ${model[side].name}`, found[side]));
    replace(place, list("Examples", found.parallel), alone);
    if (!place.childElementCount) replace(place, el("p", { class: "hint" }, "The corpus has no good example of this word."));
  }).catch(warn);
  return place;
}
