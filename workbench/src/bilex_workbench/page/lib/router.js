// Links that can be shared: the view and all its settings are after the '#', as in '#/table?status=open&sort=rank'.

import { direction, setDirection } from "./direction.js";

/** The current link as {view, query}; its direction becomes the current one. */
export function currentLink() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const query = Object.fromEntries(new URLSearchParams(search));
  setDirection(query.direction);
  return { view: path, query };
}

/** A link to a view in the current direction, unless `query` names one; settings that are empty are left out. */
export function link(view, query = {}) {
  const settings = { ...query, direction: (query.direction ?? direction()) === "backward" ? "backward" : "" };
  const kept = Object.entries(settings).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  const search = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return `#/${view}${search ? `?${search}` : ""}`;
}

/** Puts a view's settings into the address without leaving the view; Back still leads to the last view. */
export function rememberSettings(view, query) {
  if (query.direction !== undefined) setDirection(query.direction);
  const address = link(view, query);
  if (address !== location.hash) history.replaceState(null, "", address);
}

/** Goes to a view. */
export function go(view, query = {}) {
  location.hash = link(view, query);
}

/** Calls back with each link that is followed, and with the first. */
export function onLink(callback) {
  addEventListener("hashchange", () => callback(currentLink()));
  callback(currentLink());
}
