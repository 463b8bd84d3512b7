// Publish: download the dictionary, the change log, or a sheet for people without the server; import a filled-in sheet.

import { api } from "../lib/api.js";
import { sided } from "../lib/direction.js";
import { debounce, el, field, freshId, replace, select } from "../lib/dom.js";
import { count, counted } from "../lib/format.js";
import { say, warn } from "../lib/notices.js";
import { card, check, empty, kinds, table, viewHead } from "../lib/parts.js";
import { reviewerName } from "../lib/reviewer.js";
import { wordOf } from "../lib/words.js";

const WHICH = [["confirmed", "Confirmed entries only"], ["confident", "Confirmed entries, and unreviewed ones above a confidence"], ["all", "All entries except rejected ones"]];

class PublishView {
  constructor(place, app) {
    this.app = app;
    this.which = "confirmed";
    this.least = 80;
    this.without = new Set(["number"]);
    this.by = "lemma";
    this.cover = {};
    this.coverPlace = el("fieldset", { id: "cover", hidden: true }, el("legend", {}, "Cover"), ["title", "authors", "licence"].map((name) => field(name[0].toUpperCase() + name.slice(1),
      el("input", { type: "text", maxlength: 500, id: `cover-${name}`, oninput: (event) => { this.cover[name] = event.target.value; this.update(); } }))));
    this.preview = el("div", { "aria-live": "polite", id: "preview" });
    this.download = el("a", { class: "button primary", id: "download", download: true }, "Download");
    this.later = debounce(() => this.update(), 150);
    this.formats = select([], "", (value) => { this.format = value; this.update(); }, { id: "format" });
    const least = el("input", { type: "number", min: 0, max: 100, value: this.least, oninput: (event) => { this.least = Number(event.target.value); this.later(); } });
    this.leastField = field("Confidence from (%)", least);
    replace(place, viewHead("Publish"), el("div", { class: "columns" },
      card("Dictionary", this.choices(), this.kinds(), el("div", { class: "fields" }, this.leastField, field("Format", this.formats)), this.coverPlace, this.preview, el("div", { class: "row" }, this.download)),
      el("div", { class: "stack" }, this.logCard(), this.sheetCard(), this.importCard())));
    this.start();
  }

  choices() {
    const name = freshId("which");
    return el("fieldset", {}, el("legend", {}, "Which entries"), WHICH.map(([value, label]) => {
      const id = freshId("choice");
      return el("div", { class: "check" }, el("input", { type: "radio", name, id, value, checked: value === this.which, onchange: () => { this.which = value; this.update(); } }), el("label", { for: id }, label));
    }));
  }

  kinds() {
    return el("details", { id: "publish-kinds" }, el("summary", {}, "Kinds and forms"), el("div", { class: "stack" },
      field("Entries", select([["lemma", "one per headword"], ["form", "one per word form"]], this.by, (value) => { this.by = value; this.update(); }, { id: "publish-by" })),
      el("fieldset", {}, el("legend", {}, "Kinds to publish"), el("div", { class: "row" }, kinds.map(([kind, label]) => check(label, !this.without.has(kind), (on) => {
        if (on) this.without.delete(kind);
        else this.without.add(kind);
        this.update();
      }, { "data-kind": kind }))))));
  }

  async start() {
    try {
      const { formats } = await api.get("publish/formats");
      this.format = formats[0]?.name;
      replace(this.formats, formats.map(({ name, label }) => el("option", { value: name, title: label }, label.split(",")[0])));
      await this.update();
    } catch (error) {
      warn(error);
    }
  }

  async update() {
    this.leastField.hidden = this.which !== "confident";
    const choice = { which: this.which, min_confidence: this.which === "confident" ? this.least / 100 : undefined, without: [...this.without].join(","), by: this.by };
    const covered = this.format === "site" || this.format === "ontolex";
    this.coverPlace.hidden = !covered;
    this.download.href = api.address("publish/export", { format: this.format, ...choice, ...(covered ? this.cover : {}) });
    try {
      const { pairs, confirmed, first, problem } = await api.get("publish/preview", choice);
      const { source, target } = sided(this.app.model);
      this.download.hidden = pairs === 0;
      replace(this.preview, problem ? el("div", { id: "preview-problem" }, empty(problem, "review", {}, "Review entries")) : null, el("p", { id: "preview-count" }, `${counted(pairs, "pair")}, ${count(confirmed)} of them confirmed.`),
        first.length ? table("First pairs", [[source.name ?? "Source"], [target.name ?? "Target"]], first.map(([word, translation]) => [wordOf(word, { lang: source.code }), wordOf(translation, { lang: target.code })])) : null);
    } catch (error) {
      warn(error);
    }
  }

  logCard() {
    return card("Change log", el("p", { class: "hint" }, "Who decided what, and when; including decisions that were undone."),
      el("div", { class: "row" }, ["csv", "jsonl"].map((format) => el("a", { class: "button", href: api.address("publish/changes", { format }), download: true, id: `log-${format}` }, format.toUpperCase()))));
  }

  sheetCard() {
    const address = (status) => api.address("publish/sheet", { status });
    return card("Spreadsheet", el("p", { class: "hint" }, "For people without the server: they write yes or no into the column verdict and send the file back."),
      el("div", { class: "row" }, el("a", { class: "button", href: address("unreviewed"), download: true, id: "sheet-open" }, "Entries not reviewed"), el("a", { class: "button", href: address(""), download: true, id: "sheet-all" }, "All entries")));
  }

  importCard() {
    const file = el("input", { type: "file", accept: ".csv,text/csv", required: true, id: "import-file" });
    const name = el("input", { type: "text", value: reviewerName(), required: true, maxlength: 60, id: "import-reviewer" });
    let trial = true;
    const result = el("div", { role: "status", id: "import-result" });
    return card("Import decisions", el("form", {
      class: "stack",
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          const found = await api.send("POST", "publish/import", file.files[0], { query: { reviewer: name.value.trim(), dry_run: trial }, headers: { "Content-Type": "text/csv" } });
          this.imported(result, found, trial);
        } catch (error) {
          warn(error);
        }
      },
    }, field("Filled-in sheet (CSV)", file), field("Whose decisions are these", name, "For rows that do not name a reviewer."), check("Only check it, change nothing", true, (on) => { trial = on; }, { id: "import-trial" }),
    el("div", { class: "row" }, el("button", { type: "submit", class: "primary", id: "import-go" }, "Import"))), result);
  }

  imported(place, found, trial) {
    replace(place, el("p", {}, `${trial ? "Would be imported" : "Imported"}: ${count(found.accepted)} accepted, ${count(found.rejected)} rejected; ${count(found.unchanged)} unchanged, ${count(found.ignored)} without a verdict.`),
      found.problems.length ? el("ul", { class: "problems" }, found.problems.slice(0, 50).map((problem) => el("li", {}, wordOf(problem)))) : null);
    if (!trial) {
      say("The decisions were imported.");
      this.update();
    }
  }
}

/** Shows the view. */
export function show(place, query, app) {
  new PublishView(place, app);
  return {};
}
