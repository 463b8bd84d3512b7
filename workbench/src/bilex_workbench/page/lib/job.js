// The progress of a job on the server, followed through server-sent events.

import { api } from "./api.js";
import { button, el } from "./dom.js";
import { count, duration, percent } from "./format.js";
import { warn } from "./notices.js";
import { plain } from "./words.js";

const KIND = { learn: "Learning from the decisions", fit: "Fitting the model" };

/** A card that follows the running job; `onend` is called once with the job as it ended. */
export class JobCard {
  constructor(job, onend) {
    this.onend = onend;
    this.meter = el("progress", { max: 1, "aria-label": "Progress" });
    this.text = el("p", { role: "status", id: "job-text" });
    this.line = el("p", { class: "hint job-line", id: "job-line" });
    this.element = el("section", { class: "card", "aria-labelledby": "job-heading" }, el("h2", { id: "job-heading" }, KIND[job.kind] ?? job.kind), this.meter, this.text, this.line,
      el("div", { class: "row" }, button("Cancel", () => this.cancel(), { class: "danger", id: "job-cancel" })));
    this.draw(job);
    this.events = new EventSource("/api/job/events");
    this.events.addEventListener("job", (event) => this.draw(JSON.parse(event.data)));
    this.events.addEventListener("end", (event) => this.end(JSON.parse(event.data)));
  }

  draw({ phase, done, total, message, seconds }) {
    if (total) this.meter.value = done / total;
    else this.meter.removeAttribute("value");
    // The phase is spoken when it changes; the rest only shows.
    const said = phase || "Starting";
    if (this.text.textContent !== said) this.text.textContent = said;
    this.line.textContent = [total ? `${count(done)} of ${count(total)} (${percent(done / total)})` : "", seconds === undefined || seconds === null ? "" : duration(seconds), plain(message ?? "", 200)].filter(Boolean).join(" · ");
  }

  end(job) {
    this.stop();
    if (this.ended) return;
    this.ended = true;
    this.onend(job);
  }

  async cancel() {
    try {
      const { job } = await api.post("job/cancel");
      this.end(job);
    } catch (error) {
      warn(error);
    }
  }

  /** Stops following; the job goes on. */
  stop() {
    this.events.close();
  }
}
