// Light or dark: as the system says, unless the person chose.

import { button, el, replace } from "./dom.js";

const KEY = "bilex-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };

function stored() {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : "system";
}

function apply(theme) {
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}

/** The button that switches between system, light and dark; applies what was chosen before. */
export function themeSwitch() {
  apply(stored());
  const label = (theme) => el("span", {}, el("span", { class: "theme-word" }, "Theme: "), theme);
  const made = button(label(stored()), () => {
    const theme = NEXT[stored()];
    localStorage.setItem(KEY, theme);
    apply(theme);
    replace(made, label(theme));
  }, { class: "quiet", id: "theme-switch" });
  return made;
}
