// Search in a dictionary that lies in data.js, in one direction or both: exact words first, then forms, beginnings, words inside,
// and where nothing begins like the query, close spellings.
"use strict";
(() => {
  const MOST = 60;
  const { entries, codes } = window.DICTIONARY;
  const plain = (text) => text.toLocaleLowerCase().normalize("NFD").replace(/\p{M}/gu, "");

  function backward() {
    const words = new Map();
    entries.forEach((entry) => entry.senses.forEach((sense) => sense.translations.forEach(({ word }) => {
      if (!words.has(word)) words.set(word, { word, speech: "", forms: [], senses: [{ gloss: "", labels: "", examples: [], translations: [] }] });
      const found = words.get(word).senses[0].translations;
      if (!found.some((other) => other.word === entry.word)) found.push({ word: entry.word, comment: sense.gloss, labels: "" });
    })));
    return [...words.values()].sort((a, b) => a.word.localeCompare(b.word));
  }

  const sides = [entries, null];
  const keys = [null, null];
  function side(number) {
    if (!sides[number]) sides[number] = backward();
    if (!keys[number]) keys[number] = sides[number].map((entry) => [plain(entry.word), entry.forms.map(plain)]);
    return [sides[number], keys[number]];
  }

  /** How many letters must be changed, or two neighbours swapped; more than `most` is not counted out. */
  function distance(a, b, most) {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    let [last, row] = [[], Array.from({ length: b.length + 1 }, (_, index) => index)];
    for (let i = 1; i <= a.length; i += 1) {
      const next = [i];
      for (let j = 1; j <= b.length; j += 1) {
        next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1])));
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], last[j - 2] + 1);
      }
      [last, row] = [row, next];
      if (Math.min(...row) > most) return most + 1;
    }
    return row[b.length];
  }

  function search(text, numbers) {
    const wanted = plain(text.trim());
    if (!wanted) return side(numbers[0])[0].slice(0, MOST).map((entry) => [entry, numbers[0]]);
    const most = wanted.length < 6 ? 1 : 2;
    const ranked = [];
    const collect = (rankOf) => numbers.forEach((number) => side(number)[1].forEach(([word, forms], index) => {
      const rank = rankOf(word, forms);
      if (rank < 9) ranked.push([rank, word.length, index, number]);
    }));
    collect((word, forms) => (word === wanted ? 0 : forms.includes(wanted) ? 1 : word.startsWith(wanted) ? 2 : word.includes(wanted) ? 3 : 9));
    if (!ranked.some(([rank]) => rank < 3)) {
      collect((word) => {
        const far = distance(word, wanted, most);
        return far > most ? 9 : 3 + far;
      });
    }
    return ranked.sort((x, y) => x[0] - y[0] || x[1] - y[1] || x[2] - y[2]).slice(0, MOST).map(([, , index, number]) => [side(number)[0][index], number]);
  }

  function el(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children.filter(Boolean));
    return made;
  }
  function words(text, code, tag = "bdi") {
    const made = el(tag, "", text);
    if (code) made.lang = code;
    return made;
  }

  function article(entry, number) {
    const [own, other] = number ? [codes[1], codes[0]] : codes;
    const many = entry.senses.length > 1;
    return el("article", "", el("span", "into", directions[number]), words(entry.word, own, "h2"), entry.speech && el("span", "speech", ` ${entry.speech}`),
      entry.forms.length ? el("span", "forms", ` (${entry.forms.slice(0, 12).join(", ")})`) : null,
      el(many ? "ol" : "ul", many ? "" : "single", ...entry.senses.map((sense) => el("li", "", sense.labels && el("span", "labels", `${sense.labels} `), sense.gloss && el("span", "gloss", `${sense.gloss}: `),
        ...sense.translations.flatMap((one, index) => [index ? ", " : "", words(one.word, other), one.labels && el("span", "labels", ` ${one.labels}`), one.comment && el("span", "comment", ` (${one.comment})`)]),
        ...sense.examples.map((pair) => el("p", "example", words(pair[0], own), pair[1] && " — ", pair[1] && el("span", "target", words(pair[1], other))))))));
  }

  const query = document.getElementById("query");
  const direction = document.getElementById("direction");
  const directions = [...direction.options].slice(1).map(({ text }) => text);
  function show() {
    const found = search(query.value, direction.value ? [Number(direction.value)] : [0, 1]);
    document.getElementById("results").replaceChildren(...found.map(([entry, number]) => article(entry, number)));
    document.getElementById("count").textContent = found.length ? "" : "No entry is like this; try fewer letters or the other spelling.";
    history.replaceState(null, "", query.value ? `#${encodeURIComponent(query.value)}` : location.pathname.split("/").pop() || "index.html");
  }
  if (location.hash.length > 1) {
    try { query.value = decodeURIComponent(location.hash.slice(1)); } catch { query.value = ""; }
  }
  document.getElementById("search").addEventListener("submit", (event) => event.preventDefault());
  query.addEventListener("input", show);
  direction.addEventListener("change", show);
  show();
})();
