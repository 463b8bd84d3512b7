// The direction that is worked on: source words with their translations, or target words with theirs. It is part of the link.

let current = "forward";

/** "forward" or "backward". */
export const direction = () => current;

/** The other direction: that of typed translations. */
export const opposite = () => (current === "forward" ? "backward" : "forward");

/** Works on a direction from now on. */
export function setDirection(value) {
  current = value === "backward" ? "backward" : "forward";
}

/** A word and its translation as [source word, target word]. */
export const oriented = (word, translation) => (current === "forward" ? [word, translation] : [translation, word]);

/** The model in the current direction: its query language is the source. */
export function sided(model) {
  if (current === "forward") return model;
  return { ...model, source: model.target, target: model.source, entries: model.backward ?? { done: 0, total: 0, complete: false }, lemmas: { source: model.lemmas?.target, target: model.lemmas?.source } };
}
