// Words come from the web: they may hold markup, control characters, direction marks, or a megabyte.
// A word is shown as text, isolated from the direction of its surroundings, cut, and with steering characters written out.

import { el } from "./dom.js";

const LONGEST = 120;
const LONGEST_TITLE = 400;

// Controls, direction marks and overrides, invisible spaces, soft hyphen, byte order mark, tag characters, halves of characters.
// The joiners U+200C and U+200D stay: Persian and the scripts of India need them.
const STEERING = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

/** How a steering character is written: \x1b, \u202e, \u{e0041}. */
function writtenOut(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\u{${code.toString(16)}}`;
}

/** The first characters of a text, never half a character, with an ellipsis if something was cut. */
export function cut(text, longest = LONGEST) {
  const head = text.slice(0, longest * 2 + 2);
  const characters = Array.from(head);
  if (head.length === text.length && characters.length <= longest) return text;
  return `${characters.slice(0, longest).join("")}…`;
}

/** The word as plain text with steering characters written out: for attributes, titles and pictures. */
export function plain(word, longest = LONGEST) {
  return cut(String(word), longest).replace(STEERING, writtenOut);
}

/** The word as an element; `longest` characters of it are shown. */
export function wordOf(word, { lang = null, className = "", longest = LONGEST } = {}) {
  const text = String(word);
  const shown = cut(text, longest);
  const bdi = el("bdi", { class: `word ${className}`.trim(), dir: "auto", lang, title: shown === text ? null : plain(text, LONGEST_TITLE) });
  let last = 0;
  for (const found of shown.matchAll(STEERING)) {
    bdi.append(shown.slice(last, found.index), el("span", { class: "steering", dir: "ltr" }, writtenOut(found[0])));
    last = found.index + found[0].length;
  }
  bdi.append(shown.slice(last));
  return bdi;
}
