// Start from nothing: the packaged sample, or two vector files and a seed dictionary.

import { api } from "../lib/api.js";
import { el, field, replace, select } from "../lib/dom.js";
import { FileChoice } from "../lib/file_choice.js";
import { JobCard } from "../lib/job.js";
import { say, warn } from "../lib/notices.js";
import { card, viewHead } from "../lib/parts.js";
import { plain } from "../lib/words.js";

class StartView {
  constructor(place, app) {
    this.app = app;
    this.inside = el("div", { class: "start-place" });
    const { state, detail } = app.model;
    replace(place, viewHead("Start"), state === "failed" ? el("p", { role: "alert", class: "badge bad" }, plain(detail ?? "The model could not be opened.", 500)) : null,
      el("p", { class: "lead" }, "There is no model yet. Fit one on the packaged sample, or on your own files."), this.inside);
    this.load();
  }

  async load() {
    try {
      const [{ job }, setup] = await Promise.all([api.get("job"), api.get("setup")]);
      if (job?.state === "running") this.follow(job);
      else replace(this.inside, el("div", { class: "columns" }, setup.sample ? this.sampleCard(setup) : null, this.formCard(setup)));
    } catch (error) {
      warn(error);
    }
  }

  methods(setup) {
    return select(setup.methods.map(({ name, summary }) => [name, summary ? `${name}: ${summary}` : name]), setup.methods.find((method) => method.default)?.name);
  }

  async fit(body) {
    try {
      const { job } = await api.post("setup/fit", body);
      this.follow(job);
    } catch (error) {
      warn(error);
    }
  }

  sampleCard(setup) {
    const method = this.methods(setup);
    method.id = "sample-method";
    return card("The sample", el("p", {}, "10,000 English and 10,000 Finnish words with a seed dictionary. Good for a first look."),
      el("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); this.fit({ sample: true, name: "sample", method: method.value }); } },
        field("Method", method), el("div", { class: "row" }, el("button", { type: "submit", class: "primary", id: "sample-fit" }, "Fit the sample"))));
  }

  formCard(setup) {
    const source = new FileChoice("Vectors of the source language", "word2vec, fastText or GloVe text, or a bilex folder's file", setup);
    const target = new FileChoice("Vectors of the target language", "the same kinds", setup);
    const seeds = new FileChoice("Seed dictionary", "a word pair on each line; some methods do without", setup);
    const text = (properties) => el("input", { type: "text", autocapitalize: "off", spellcheck: "false", ...properties });
    const [name, from, to] = [text({ required: true, maxlength: 80, id: "fit-name" }), text({ maxlength: 12, id: "fit-source-language" }), text({ maxlength: 12, id: "fit-target-language" })];
    const limit = el("input", { type: "number", min: 100, value: 200_000, required: true, id: "fit-limit" });
    const method = this.methods(setup);
    method.id = "fit-method";
    const encoder = select([["", "none"], ...setup.language_models.filter(({ available }) => available).map(({ name: key, summary }) => [key, summary ? `${key}: ${summary}` : key])], "");
    return card("Your own files", el("form", {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        if (!source.value || !target.value) {
          warn("Choose or upload the vectors of both languages first.");
          return;
        }
        this.fit({
          name: name.value.trim(), source: source.value, target: target.value, seeds: seeds.value, source_language: from.value.trim() || null, target_language: to.value.trim() || null,
          method: method.value, language_model: encoder.value || null, limit: Number(limit.value), updates: null,
        });
      },
    }, source.element, target.element, seeds.element, el("div", { class: "row" }, field("Name of the model", name), field("Source language code", from), field("Target language code", to)),
    el("div", { class: "row" }, field("Method", method), field("Language model", encoder), field("Most frequent words only", limit)),
    el("div", { class: "row" }, el("button", { type: "submit", class: "primary", id: "fit-go" }, "Fit the model"))));
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
