// Start from nothing: the packaged sample, or two languages, their files and a seed dictionary.

import { api } from "../lib/api.js";
import { el, field, replace, select } from "../lib/dom.js";
import { FileChoice } from "../lib/file_choice.js";
import { JobCard } from "../lib/job.js";
import { say, warn } from "../lib/notices.js";
import { card, viewHead } from "../lib/parts.js";
import { plain } from "../lib/words.js";

const CODES = "af ar be bg bn bs ca cs cy da de el en eo es et eu fa fi fo fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko ku ky la lb lo lt lv mk ml mn mr ms mt my nb ne nl nn no pa pl ps pt ro ru se sk sl so sq sr sv sw ta te tg th tl tr uk ur uz vi xh yi yo zh zu".split(" ");
const names = new Intl.DisplayNames(["en"], { type: "language" });
const nameOf = (code) => names.of(code);

/** The code of a language that was typed as its name or as its code. */
function codeOf(typed) {
  const text = typed.trim();
  return CODES.find((code) => nameOf(code).toLowerCase() === text.toLowerCase()) ?? text;
}

class StartView {
  constructor(place, app) {
    this.app = app;
    this.inside = el("div", { class: "start-place" });
    const { state, detail } = app.model;
    replace(place, viewHead("Start"), state === "failed" ? el("p", { role: "alert", class: "badge bad" }, plain(detail ?? "The model could not be opened.", 500)) : null,
      el("p", { class: "lead" }, "A dictionary needs two languages. Try the sample, or use your own files."), this.inside);
    this.load();
  }

  async load() {
    try {
      const [{ job }, setup] = await Promise.all([api.get("job"), api.get("setup")]);
      if (job?.state === "running") this.follow(job);
      else replace(this.inside, el("div", { class: "stack" }, setup.sample ? this.sampleCard(setup) : null, this.formCard(setup)));
    } catch (error) {
      warn(error);
    }
  }

  async fit(body) {
    try {
      const { job } = await api.post("setup/fit", body);
      this.follow(job);
    } catch (error) {
      warn(error);
    }
  }

  /** A choice of the method, with a line that says what the chosen one does. */
  method(setup, id) {
    const about = (name) => setup.methods.find((method) => method.name === name)?.summary ?? "";
    const first = setup.methods.find((method) => method.default)?.name;
    const hint = el("p", { class: "hint", role: "status" }, about(first));
    const chosen = select(setup.methods.map(({ name }) => [name, name]), first, (name) => { hint.textContent = about(name); }, { id });
    return [chosen, el("div", { class: "field" }, field("Method", chosen), hint)];
  }

  sampleCard(setup) {
    const [method, methodField] = this.method(setup, "sample-method");
    return card("Try it with the sample", el("p", {}, "10,000 English and 10,000 Finnish words with a seed dictionary: ready in a few minutes, good for a first look."),
      el("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); this.fit({ sample: true, name: "sample", method: method.value }); } },
        el("div", { class: "row" }, el("button", { type: "submit", class: "primary", id: "sample-fit" }, "Make the sample dictionary")),
        el("details", {}, el("summary", {}, "Advanced"), methodField)));
  }

  formCard(setup) {
    const text = (properties) => el("input", { type: "text", autocapitalize: "off", spellcheck: "false", ...properties });
    const [name, from, to] = [text({ required: true, maxlength: 80, id: "fit-name" }), text({ maxlength: 40, id: "fit-source-language", list: "languages", placeholder: "English" }), text({ maxlength: 40, id: "fit-target-language", list: "languages", placeholder: "Finnish" })];
    const files = [["Words of the first language", "A file of word vectors: fastText or word2vec (.vec, .txt, .bin, also .gz), GloVe, or .npy."], ["Words of the second language", "The same kinds of file."],
      ["Word pairs that you know", "One pair per line, first language first: a text, CSV or dictionary file. A few hundred pairs help most; some methods do without."]].map(([label, hint]) => new FileChoice(label, hint, setup));
    const [source, target, seeds] = files;
    const limit = el("input", { type: "number", min: 100, value: 200_000, required: true, id: "fit-limit" });
    const [method, methodField] = this.method(setup, "fit-method");
    const encoder = select([["", "none"], ...setup.language_models.filter(({ available }) => available).map(({ name: key }) => [key, key])], "", null, { id: "fit-encoder" });
    const named = () => {
      source.rename(from.value.trim() ? `${from.value.trim()} words` : files[0].label);
      target.rename(to.value.trim() ? `${to.value.trim()} words` : files[1].label);
      if (!name.dataset.typed) name.value = [from, to].every(({ value }) => value.trim()) ? `${codeOf(from.value)}-${codeOf(to.value)}` : "";
    };
    [from, to].forEach((input) => input.addEventListener("input", named));
    name.addEventListener("input", () => { name.dataset.typed = "yes"; });
    return card("Your own languages", el("form", {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        if (!source.value || !target.value) {
          warn("Choose the files of both languages first.");
          return;
        }
        this.fit({
          name: name.value.trim(), source: source.value, target: target.value, seeds: seeds.value, source_language: codeOf(from.value) || null, target_language: codeOf(to.value) || null,
          method: method.value, language_model: encoder.value || null, limit: Number(limit.value), updates: null,
        });
      },
    }, el("datalist", { id: "languages" }, CODES.map((code) => el("option", { value: nameOf(code) }, code))),
    el("fieldset", { class: "step" }, el("legend", {}, "1. Which languages?"), field("From", from, "A name such as English, or its code, en."), field("Into", to)),
    el("fieldset", { class: "step" }, el("legend", {}, "2. Which files?"), files.map(({ element }) => element)),
    el("fieldset", { class: "step" }, el("legend", {}, "3. Which name?"), field("Name of the dictionary", name)),
    el("details", { id: "fit-advanced" }, el("summary", {}, "Advanced"), el("div", { class: "step" }, methodField, field("Language model", encoder, "Adds what a language model knows of spelling and meaning; takes longer."), field("Most frequent words only", limit, "This many words of each language are read."))),
    el("div", { class: "row" }, el("button", { type: "submit", class: "primary", id: "fit-go" }, "Make the dictionary"))));
  }

  follow(job) {
    this.job = new JobCard(job, (ended) => this.ended(ended));
    replace(this.inside, this.job.element);
  }

  async ended(job) {
    if (job.state === "done") {
      await this.app.openedModel();
      return;
    }
    if (job.state === "failed") warn(job.detail ?? "The fit failed.");
    else say("Cancelled.");
    await this.load();
  }
}

/** Shows the view. */
export function show(place, query, app) {
  const view = new StartView(place, app);
  return { leave: () => view.job?.stop() };
}
