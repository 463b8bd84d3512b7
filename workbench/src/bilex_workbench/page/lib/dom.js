// Building pages from elements. Text always enters as text nodes: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: `el("button", { type: "button", onclick }, "Save")`. */
export function el(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Puts new content in place of all that an element holds. */
export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A button that runs an action and cannot be pressed again until it ends. */
export function button(label, action, properties = {}) {
  const made = el("button", { type: "button", ...properties }, label);
  made.addEventListener("click", async () => {
    if (made.getAttribute("aria-disabled") === "true") return;
    made.setAttribute("aria-disabled", "true");
    try {
      await action(made);
    } finally {
      made.removeAttribute("aria-disabled");
    }
  });
  return made;
}

let counter = 0;

/** An id that no other element of the page has. */
export function freshId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** A labelled form control: the label above, the control, and a hint below where there is one. */
export function field(label, control, hint) {
  if (!control.id) control.id = freshId("field");
  const hintId = hint ? `${control.id}-hint` : null;
  if (hintId) control.setAttribute("aria-describedby", hintId);
  return el("div", { class: "field" },
    el("label", { for: control.id }, label), control, hint && el("p", { class: "hint", id: hintId }, hint));
}

/** A select with [value, label] options. */
export function select(options, value, onchange, properties = {}) {
  return el("select", { onchange: (event) => onchange?.(event.target.value), ...properties },
    options.map(([key, label]) => el("option", { value: key, selected: String(key) === String(value ?? "") }, label)));
}

/** A function that runs only after calls to it have paused. */
export function debounce(action, milliseconds) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}
