// The start of the page: the model's state, the navigation, and which view is shown.

import { api } from "./lib/api.js";
import { opposite, sided } from "./lib/direction.js";
import { button, el, replace } from "./lib/dom.js";
import { clearWarnings, noticeRegions, say, warn } from "./lib/notices.js";
import { currentLink, go, link, onLink } from "./lib/router.js";
import { themeSwitch } from "./lib/theme.js";
import { plain } from "./lib/words.js";
import { keyHelp } from "./views/help.js";

const VIEWS = {
  translate: ["Translate", () => import("./views/translate.js")],
  table: ["Dictionary", () => import("./views/table.js")],
  review: ["Review", () => import("./views/review.js")],
  audit: ["Audit", () => import("./views/audit.js")],
  learn: ["Learn", () => import("./views/learn.js")],
  publish: ["Publish", () => import("./views/publish.js")],
  people: ["People", () => import("./views/people.js")],
};
const UNLISTED = {
  entry: ["Entry", () => import("./views/entry.js")],
  start: ["Start", () => import("./views/start.js")],
};
const LOADING_POLL_MS = 400;
const FILLING_POLL_MS = 3000;

const main = document.getElementById("main");
const navigation = el("nav", { "aria-label": "Parts of the workbench", id: "navigation" });
const modelName = el("span", { class: "model-name", id: "model-name" });
// Works on the same part of the dictionary in the other direction; what was searched for belongs to one direction.
const turn = button("", () => {
  const { view, query } = currentLink();
  if (view === "entry") go("table", { direction: opposite() });
  else go(view, { ...query, q: "", direction: opposite() });
}, { class: "small", id: "turn", title: "Work in the other direction" });
let current = null;
let order = 0;

/** What all views share. `model` is the newest answer of GET /api/model. */
const app = {
  model: null,
  listeners: new Set(),
  /** Asks for the model's state again and reports it to whoever listens. */
  async refresh() {
    app.model = await api.get("model");
    describeModel();
    for (const listener of app.listeners) listener(app.model);
    return app.model;
  },
  /** The same, until the server has opened the model. */
  async refreshUntilOpen() {
    await app.refresh();
    while (app.model.state === "loading") {
      await new Promise((resolve) => { setTimeout(resolve, LOADING_POLL_MS); });
      await app.refresh();
    }
  },
  /** Goes on with a model that a job has just made. */
  async openedModel() {
    await app.refreshUntilOpen();
    say(`The model ${plain(app.model.name, 60)} is open.`);
    if (location.hash === link("translate")) await follow(currentLink());
    else go("translate");
  },
};

function describeModel() {
  const { state, name, source, target } = sided(app.model);
  const ready = state === "ready";
  const [from, to] = [source, target].map((side, index) => side?.name ?? side?.code ?? ["source", "target"][index]);
  replace(modelName, ready ? plain(name, 30) : "");
  turn.hidden = !ready;
  replace(turn, el("span", { class: "hidden-text" }, "Change direction: "), `${from} → ${to}`);
  const shown = ready ? Object.entries(VIEWS) : [];
  const drawn = `${ready} ${from}`;
  if (navigation.dataset.drawn !== drawn) {
    navigation.dataset.drawn = drawn;
    replace(navigation, el("ul", {}, shown.map(([view, [label]]) => el("li", {}, el("a", { href: link(view), "data-view": view }, label)))));
  }
  navigation.hidden = !ready;
}

function markCurrent(view) {
  for (const anchor of navigation.querySelectorAll("a")) {
    if (anchor.dataset.view === view) {
      anchor.setAttribute("aria-current", "page");
      navigation.scrollLeft = anchor.offsetLeft - navigation.offsetLeft - (navigation.clientWidth - anchor.offsetWidth) / 2;
    } else anchor.removeAttribute("aria-current");
  }
}

function leave() {
  current?.leave?.();
  current = null;
  clearWarnings();
}

async function open(view, query) {
  const [title, load] = VIEWS[view] ?? UNLISTED[view];
  order += 1;
  const mine = order;
  const first = current === null && order === 1;
  const module = await load();
  if (mine !== order) return;
  leave();
  const place = el("div", { class: "view", "data-view": view });
  replace(main, place);
  document.title = `${title} – bilex workbench`;
  document.body.dataset.view = view;
  describeModel();
  markCurrent(view === "entry" ? "table" : view);
  current = module.show(place, query, app) ?? {};
  scrollTo(0, 0);
  if (!first && !place.contains(document.activeElement)) place.querySelector("h1")?.focus({ preventScroll: true });
}

/** Shows a link's view; without a model only the start, while it loads only that. */
async function follow({ view, query }) {
  try {
    if (app.model.state === "none" || app.model.state === "failed") await open("start", query);
    else if (app.model.state === "loading") await waitForModel({ view, query });
    else if (view in VIEWS || view === "entry") await open(view, query);
    else location.replace(link("translate"));
  } catch (error) {
    warn(error);
  }
}

async function waitForModel(wanted) {
  leave();
  replace(main, el("p", { role: "status", class: "lead" }, "The model is being opened…"));
  await app.refreshUntilOpen();
  await follow(wanted);
}

/** Follows the table's filling in the background, and a model that another page exchanged. */
async function watchModel() {
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, FILLING_POLL_MS); });
    if (document.hidden || app.model.state !== "ready" || sided(app.model).entries?.complete) continue;
    try {
      await app.refresh();
    } catch {
      // The next request that a person makes reports it.
    }
  }
}

async function start() {
  replace(document.getElementById("header"), el("div", { class: "bar" },
    el("a", { class: "brand", href: link("translate") }, el("img", { src: "icon.svg", alt: "" }), "bilex", modelName), turn, navigation,
    el("div", { class: "bar-end" }, button("Keys", keyHelp, { class: "quiet", id: "key-help" }), themeSwitch())));
  document.body.append(noticeRegions());
  document.getElementById("skip-link").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  document.addEventListener("keydown", (event) => {
    const free = !event.target.closest?.("input, textarea, select, dialog");
    if (event.key === "?" && free && !event.ctrlKey && !event.altKey) keyHelp();
  });
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    warn(event.reason);
  });
  try {
    await app.refresh();
  } catch (error) {
    replace(main, el("p", { role: "alert", class: "lead" }, error.message));
    return;
  }
  onLink(follow);
  watchModel();
}

start();
