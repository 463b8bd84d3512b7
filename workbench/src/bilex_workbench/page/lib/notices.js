// Short messages: spoken by screen readers through live regions, shown for a while at the foot of the page.

import { button, el } from "./dom.js";

const SHOWN_MS = 6000;
let polite = null;
let assertive = null;

/** The place of the messages; added to the page once. */
export function noticeRegions() {
  polite = el("div", { role: "status", "aria-live": "polite", class: "notices" });
  assertive = el("div", { role: "alert", class: "notices" });
  return el("div", { class: "notice-stack" }, polite, assertive);
}

function show(region, text, kind) {
  const notice = el("p", { class: `notice ${kind}` }, text);
  const dismiss = button("Dismiss", () => notice.remove(), { class: "quiet small" });
  notice.append(" ", dismiss);
  region.append(notice);
  while (region.childElementCount > 3) region.firstElementChild.remove();
  return notice;
}

/** A message that needs no answer. */
export function say(text) {
  const notice = show(polite, text, "info");
  setTimeout(() => notice.remove(), SHOWN_MS);
}

/** An error, which stays until it is dismissed or the view is left. */
export function warn(error) {
  if (error?.name === "AbortError") return;
  show(assertive, error instanceof Error ? error.message : String(error), "error");
}

/** Takes old errors away. */
export function clearWarnings() {
  assertive.replaceChildren();
}
