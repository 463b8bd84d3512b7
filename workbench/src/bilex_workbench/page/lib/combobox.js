// A text field with completion: an ARIA combobox with a line of suggestions below, which covers nothing. Arrows choose, Enter takes, Escape closes the list first.

import { debounce, el, freshId, replace } from "./dom.js";
import { wordOf } from "./words.js";

const PAUSE_MS = 60;

/**
 * A completed text field.
 *
 * @param {object} given
 *   label: name for screen readers; value: first text; complete: async (text, signal) => [{word, note}];
 *   onpick: (word) => void, called on Enter or a click; oninput: (text) => void; lang: language of the words.
 * @returns {{element, input, close}}
 */
export function combobox({ label, value = "", complete, onpick, oninput, lang = null, placeholder = null, id = freshId("combobox") }) {
  const list = el("ul", { class: "options", id: `${id}-options`, role: "listbox", "aria-label": label, "aria-orientation": "horizontal", hidden: true });
  const input = el("input", {
    type: "text", id, value, role: "combobox", autocomplete: "off", autocapitalize: "off", spellcheck: "false", dir: "auto", lang, placeholder,
    "aria-label": label, "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  });
  let offered = [];
  let active = -1;
  let running = null;
  // Whether the list is older than the text; an arrow pressed meanwhile waits for the new one.
  let stale = false;
  let queued = 0;

  function close() {
    running?.abort();
    offered = [];
    active = -1;
    stale = false;
    queued = 0;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(index) {
    active = index;
    [...list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    if (index >= 0) {
      input.setAttribute("aria-activedescendant", list.children[index].id);
      list.children[index].scrollIntoView({ block: "nearest", inline: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function pick(word) {
    input.value = word;
    close();
    refresh.cancelled = true;
    onpick(word);
  }

  function option({ word, note }, index) {
    return el("li", { role: "option", id: `${id}-option-${index}`, "aria-selected": "false", onmousedown: (event) => event.preventDefault(), onclick: () => pick(word) },
      note ? el("small", { title: note }, "≈ ", el("span", { class: "hidden-text" }, note, " ")) : null, wordOf(word, { lang }));
  }

  const refresh = debounce(async () => {
    const text = input.value.trim();
    if (refresh.cancelled || !text) return close();
    running?.abort();
    const mine = new AbortController();
    running = mine;
    let found = [];
    try {
      found = await complete(text, mine.signal);
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      throw error;
    }
    if (running !== mine || refresh.cancelled || document.activeElement !== input) return undefined;
    offered = found;
    replace(list, found.map(option));
    mark(found.length && queued ? (queued > 0 ? 0 : found.length - 1) : -1);
    stale = false;
    queued = 0;
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    return undefined;
  }, PAUSE_MS);

  input.addEventListener("input", () => {
    refresh.cancelled = false;
    stale = true;
    oninput?.(input.value);
    refresh();
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (offered.length || stale)) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (stale) {
        queued = step;
        return;
      }
      mark((active + step + offered.length + (active < 0 && step < 0 ? 1 : 0)) % offered.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const word = active >= 0 ? offered[active].word : input.value.trim();
      if (word) pick(word);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  return { element: el("div", { class: "combobox" }, input, list), input, close };
}
