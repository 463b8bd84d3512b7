// Links that can be shared: the view and all its settings stand after the '#', as in '#/table?status=open&sort=rank'.

/** The present link as {view, query}. */
export function currentLink() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** A link to a view; settings that are empty are left out. */
export function link(view, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  const search = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return `#/${view}${search ? `?${search}` : ""}`;
}

/** Puts a view's settings into the address without leaving the view; Back still leads to the last view. */
export function rememberSettings(view, query) {
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
