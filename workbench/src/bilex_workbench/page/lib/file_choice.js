// One file for the fit: chosen from the allowed folder on the server's machine, or uploaded from this one.

import { api } from "./api.js";
import { button, el, freshId, replace } from "./dom.js";
import { bytes, percent } from "./format.js";
import { warn } from "./notices.js";
import { uploadFile } from "./upload.js";
import { plain, wordOf } from "./words.js";

/** A field for one file; `value` is null, {path} or {upload}. */
export class FileChoice {
  constructor(label, hint, setup) {
    this.setup = setup;
    this.label = label;
    this.legend = el("legend", {}, label);
    this.value = null;
    this.shown = el("p", { class: "chosen-file", role: "status" });
    this.browser = el("div", { class: "file-browser", hidden: true });
    this.file = el("input", { type: "file", id: freshId("file"), onchange: () => this.upload() });
    this.meter = el("progress", { max: 1, value: 0, hidden: true, "aria-label": `Upload: ${label}` });
    this.stopButton = button("Stop the upload", () => this.control?.abort(), { class: "small", hidden: true });
    this.element = el("fieldset", { class: "file-choice" }, this.legend, el("p", { class: "hint" }, hint), this.shown,
      setup.folder ? el("div", { class: "row" }, button(`Choose from ${plain(setup.folder_name ?? setup.folder, 40)}`, () => this.browse(""), { class: "small browse" })) : null,
      this.browser, el("div", { class: "field" }, el("label", { for: this.file.id }, setup.folder ? "or from this computer" : "From this computer"), this.file), this.meter, this.stopButton);
  }

  /** Calls the file by another name, such as its language. */
  rename(label) {
    this.legend.textContent = label;
  }

  async browse(path) {
    try {
      const found = await api.get("setup/files", { path });
      this.browser.hidden = false;
      const line = (label, action, size) => el("li", {}, button(label, action, { class: "quiet small" }), el("small", {}, size ?? ""));
      replace(this.browser, el("ul", { "aria-label": "Files" },
        found.parent === null || found.parent === undefined ? null : line("↑ up", () => this.browse(found.parent)),
        found.entries.map((entry) => (entry.kind === "folder" ? line([wordOf(entry.name), "/"], () => this.browse(entry.path)) : line(wordOf(entry.name), () => this.take({ path: entry.path }, entry.name), bytes(entry.size))))));
      this.browser.querySelector("button")?.focus();
    } catch (error) {
      warn(error);
    }
  }

  take(value, name) {
    this.value = value;
    this.browser.hidden = true;
    replace(this.shown, "Chosen: ", wordOf(name));
  }

  async upload() {
    const file = this.file.files[0];
    this.control?.abort();
    if (!file) return;
    if (file.size > this.setup.upload_limit) {
      warn(`${plain(file.name)} has ${bytes(file.size)}; at most ${bytes(this.setup.upload_limit)} are taken.`);
      return;
    }
    this.value = null;
    this.control = new AbortController();
    this.busy(true);
    try {
      const done = await uploadFile(file, {
        piece: this.setup.piece, signal: this.control.signal,
        onprogress: (received, size) => {
          this.meter.value = size ? received / size : 1;
          this.shown.textContent = `Uploading: ${percent(size ? received / size : 1)}`;
        },
      });
      this.take({ upload: done.id }, file.name);
    } catch (error) {
      this.shown.textContent = error.name === "AbortError" ? "The upload was stopped." : "The upload failed.";
      warn(error);
    } finally {
      this.busy(false);
    }
  }

  busy(on) {
    this.meter.hidden = !on;
    this.meter.value = 0;
    this.stopButton.hidden = !on;
  }
}
