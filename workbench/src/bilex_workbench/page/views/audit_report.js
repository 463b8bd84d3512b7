// What an audit found: precision with its 95 % interval, over all and by part; how many more decisions are needed; recalibration.

import { api } from "../lib/api.js";
import { button, el, field, replace, svg } from "../lib/dom.js";
import { count, counted, percent, range } from "../lib/format.js";
import { say, warn } from "../lib/notices.js";
import { card, stats, table } from "../lib/parts.js";

/** An interval as a line on a scale from 0 to 1; the numbers are beside it in the table. */
function intervalPicture({ precision, low, high }) {
  if (precision === null || precision === undefined) return "";
  return svg("svg", { viewBox: "0 0 200 16", class: "interval", "aria-hidden": "true" }, svg("line", { class: "interval-scale", x1: 2, x2: 198, y1: 8, y2: 8 }),
    svg("line", { class: "interval-line", x1: 2 + low * 196, x2: 2 + high * 196, y1: 8, y2: 8 }), svg("circle", { class: "interval-dot", cx: 2 + precision * 196, cy: 8, r: 4 }));
}

function partTable(caption, first, rows) {
  return table(caption, [[first], ["Entries", true], ["Decided", true], ["Right", true], ["Precision", true], ["95 % interval"], ["From 0 to 100 %"]], rows.map((row) => [
    range(row.name), count(row.entries), count(row.decided), count(row.right), percent(row.precision), row.decided ? `${percent(row.low)} – ${percent(row.high)}` : "–", intervalPicture(row)]));
}

function more(report) {
  const answer = el("p", { role: "status", class: "beside", id: "more-decisions" });
  const describe = ({ width, decisions }) => { answer.textContent = decisions === 0 ? `The interval is already at most ${percent(width)} wide.` : `About ${counted(decisions, "more decision")} would make the interval ${percent(width)} wide.`; };
  const input = el("input", { type: "number", min: 1, max: 50, value: Math.round(report.more_decisions.width * 100), id: "wanted-width" });
  input.addEventListener("change", async () => {
    try {
      describe((await api.get("audit/report", { width: Number(input.value) / 100 })).more_decisions);
    } catch (error) {
      warn(error);
    }
  });
  describe(report.more_decisions);
  return el("div", { class: "fields wanted-width" }, field("Wanted width of the interval (points)", input), answer);
}

function recalibration(app, report, again) {
  const { recalibration: done } = report;
  const act = (request, text) => async () => {
    try {
      await request();
      say(text);
      await again();
    } catch (error) {
      warn(error);
    }
  };
  return card("Confidences", report.calibration.length ? table("Predicted and measured", [["Confidence"], ["Predicted", true], ["Measured", true], ["Decided", true]], report.calibration.map((row) => [range(row.name), percent(row.said), percent(row.found), count(row.decided)])) : null,
    done
      ? el("p", {}, `Recalibrated from ${counted(done.decisions, "decision")}: calibration error ${done.error_before?.toFixed(3)} before, ${done.error_after?.toFixed(3)} after.`)
      : el("p", { class: "hint" }, "The audit's answers can correct the confidences in the table, in the queue and in exports."),
    done ? el("p", { class: "hint" }, "Applied to the model, they hold outside of the workbench too: for bilex translate, bilex lexicon and programs.") : null,
    el("div", { class: "row" }, button(done ? "Recalibrate again" : "Recalibrate", act(() => api.post("audit/recalibrate"), "The confidences were recalibrated."), { id: "recalibrate" }),
      done ? button("Take it back", act(() => api.remove("audit/recalibrate"), "The model's own confidences are back."), { id: "recalibrate-undo" }) : null,
      done ? button("Apply to the model", act(async () => { await api.post("audit/apply"); await app.refreshUntilOpen(); }, "The model has the recalibrated confidences."), { id: "recalibrate-apply" }) : null));
}

/** The report as elements; `again` draws the view again after a change. */
export async function auditReport(app, again) {
  const report = await api.get("audit/report", { width: 0.1 });
  const place = el("div", { class: "audit-report", id: "audit-report" });
  if (!report.decided) return replace(place, el("p", { class: "empty" }, "Start the audit; the report appears after the first decision."));
  return replace(place,
    card("Precision", stats([["Right", percent(report.precision)], ["95 % interval", `${percent(report.low)} – ${percent(report.high)}`], ["Decisions", count(report.decided)]]), intervalPicture(report), more(report)),
    card("By frequency", partTable("Precision by frequency", "Ranks", report.by_band)),
    card("By confidence", partTable("Precision by confidence", "Confidence", report.by_confidence)),
    recalibration(app, report, again));
}
