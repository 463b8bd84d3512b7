// The structure of an entry as a form: part of speech, senses with glosses, labels, comments and examples, notes. Ctrl+Enter saves.

import { api } from "./api.js";
import { button, el, field, freshId, replace } from "./dom.js";
import { say, warn } from "./notices.js";

const SPEECH = ["noun", "verb", "adjective", "adverb", "pronoun", "preposition", "conjunction", "numeral", "interjection", "proper noun", "phrase"];
const list = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

/** A text field that writes into an object. */
function bound(object, name, properties = {}, { read = (value) => value, write = (value) => value } = {}) {
  return el("input", { type: "text", dir: "auto", maxlength: 1000, value: read(object[name]), oninput: (event) => { object[name] = write(event.target.value); }, ...properties });
}

const commas = { read: (labels) => labels.join(", "), write: list };

/**
 * The form.
 *
 * @param {object} given source; article; accepted: translations to put into senses; languages: [source, target]; reviewer; onsaved: (article) => void.
 */
export function articleForm({ source, article, accepted, languages, reviewer, onsaved }) {
  const made = structuredClone(article);
  if (!made.senses.length) made.senses.push({ gloss: "", labels: [], translations: [], examples: [] });
  const named = new Set(made.senses.flatMap((sense) => sense.translations.map(({ target }) => target)));
  made.senses[0].translations.push(...accepted.filter((target) => !named.has(target)).map((target) => ({ target, comment: "", labels: [] })));
  const speech = el("datalist", { id: freshId("speech") }, SPEECH.map((value) => el("option", { value })));
  const senses = el("ol", { class: "senses" });
  const notes = el("textarea", { rows: 2, maxlength: 10000, dir: "auto", oninput: (event) => { made.notes = event.target.value; } });
  notes.value = made.notes;

  function translation(sense, one) {
    return el("li", { class: "fields" }, field("Translation", bound(one, "target", { lang: languages[1].code })), field("Comment", bound(one, "comment")), field("Labels", bound(one, "labels", { placeholder: "formal, botany" }, commas)),
      button("×", () => { sense.translations = sense.translations.filter((other) => other !== one); draw(); }, { class: "quiet small", "aria-label": "Remove this translation" }));
  }

  function example(sense, one) {
    return el("li", { class: "fields" }, field(`Example (${languages[0].name})`, bound(one, "source", { lang: languages[0].code, maxlength: 2000 })), field(`Example (${languages[1].name})`, bound(one, "target", { lang: languages[1].code, maxlength: 2000 })),
      button("×", () => { sense.examples = sense.examples.filter((other) => other !== one); draw(); }, { class: "quiet small", "aria-label": "Remove this example" }));
  }

  function draw(focusLast = false) {
    replace(senses, made.senses.map((sense, index) => el("li", { class: "sense" },
      el("div", { class: "fields" }, field(`Sense ${index + 1}: gloss`, bound(sense, "gloss", { class: "gloss" })), field("Labels", bound(sense, "labels", { placeholder: "register, domain, region" }, commas)),
        made.senses.length > 1 ? button("Remove sense", () => { made.senses.splice(index, 1); draw(); }, { class: "quiet small" }) : null),
      el("ul", {}, sense.translations.map((one) => translation(sense, one)), sense.examples.map((one) => example(sense, one))),
      el("div", { class: "row" }, button("Add translation", () => { sense.translations.push({ target: "", comment: "", labels: [] }); draw(); }, { class: "small" }),
        button("Add example", () => { sense.examples.push({ source: "", target: "" }); draw(); }, { class: "small" })))));
    if (focusLast) [...senses.querySelectorAll(".gloss")].pop()?.focus();
  }

  async function save() {
    const kept = { ...made, senses: made.senses.map((sense) => ({ ...sense, translations: sense.translations.filter(({ target }) => target.trim()), examples: sense.examples.filter((one) => one.source.trim() || one.target.trim()) })) };
    try {
      const answer = await api.put("entry/article", { source, reviewer, article: kept });
      say("The entry is saved.");
      onsaved(answer.article);
    } catch (error) {
      warn(error);
    }
  }

  draw();
  return el("form", {
    class: "article", id: "article",
    onsubmit: (event) => { event.preventDefault(); save(); },
    onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); save(); } },
  }, speech, el("div", { class: "fields" }, field("Part of speech", bound(made, "part_of_speech", { list: speech.id, maxlength: 60, id: "part-of-speech" }))),
  senses, field("Notes", notes), el("div", { class: "row" }, button("Add sense", () => { made.senses.push({ gloss: "", labels: [], translations: [], examples: [] }); draw(true); }, { id: "add-sense" }),
    el("button", { type: "submit", class: "primary", id: "save-article" }, "Save the entry", el("kbd", { "aria-hidden": "true" }, "Ctrl+Enter"))));
}
