// The direction that is worked on: source words with their translations, or target words with theirs. It is part of the link.

let present = "forward";

/** "forward" or "backward". */
export const direction = () => present;

/** The other direction: that of typed translations. */
export const opposite = () => (present === "forward" ? "backward" : "forward");

/** Works on a direction from now on. */
export function setDirection(value) {
  present = value === "backward" ? "backward" : "forward";
}

/** A word that is asked about and its translation as [source word, target word]. */
export const oriented = (word, translation) => (present === "forward" ? [word, translation] : [translation, word]);

/** The model as the present direction has it: words that are asked about on the source side. */
export function sided(model) {
  if (present === "forward") return model;
  return { ...model, source: model.target, target: model.source, entries: model.backward ?? { done: 0, total: 0, complete: false }, lemmas: { source: model.lemmas?.target, target: model.lemmas?.source } };
}
