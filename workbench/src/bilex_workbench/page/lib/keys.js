// Keyboard shortcuts of one letter: only where nobody types, and only while they are switched on.

const OFF = "bilex-keys-off";

/** Whether shortcuts are on. */
export const keysOn = () => localStorage.getItem(OFF) !== "yes";

/** Switches shortcuts on or off for this browser. */
export function switchKeys(on) {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "yes");
}

function typing(target) {
  return target instanceof HTMLElement && target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, dialog") !== null;
}

/** The name of a pressed key for a table of shortcuts: "a", "Enter", "ctrl+z"; null where it belongs to the browser. */
function nameOf(event) {
  if (event.altKey || event.isComposing) return null;
  if (event.ctrlKey || event.metaKey) return event.key.toLowerCase() === "z" && !event.shiftKey ? "ctrl+z" : null;
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/**
 * Listens to shortcuts: `keys` maps names to actions. Enter and Space on a control stay the control's.
 *
 * @returns a function that stops listening.
 */
export function shortcuts(keys) {
  function pressed(event) {
    const name = nameOf(event);
    const action = name === null ? undefined : keys[name];
    if (!action || typing(event.target) || event.defaultPrevented) return;
    if (name.length === 1 && !keysOn()) return;
    if ((name === "Enter" || name === " ") && event.target.closest?.("button, a, input, summary")) return;
    event.preventDefault();
    if (!event.repeat) action();
  }
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
