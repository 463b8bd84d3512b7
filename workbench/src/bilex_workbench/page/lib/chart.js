// A plot of points with names that can be zoomed, moved, and saved as a picture.

import { el, svg } from "./dom.js";
import { plain } from "./words.js";

const WIDTH = 640;
const HEIGHT = 480;
const MARGIN = 60;
const LABEL_HEIGHT = 19;
const LETTER_WIDTH = 9.2;
const KEPT = ["fill", "stroke", "stroke-width", "stroke-opacity", "font-size", "font-family", "font-weight", "opacity", "paint-order", "stroke-linejoin"];

/** The plot: `points` have x and y in -1…1, a word, a language, and `query` on one of them; `lines` join their numbers. */
export class Chart {
  constructor({ points, lines, label, onpick }) {
    this.points = points;
    this.lines = lines;
    this.onpick = onpick;
    this.scale = 1;
    this.shift = [0, 0];
    this.layer = svg("g");
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": label }, svg("rect", { class: "chart-ground", width: WIDTH, height: HEIGHT }), this.layer);
    this.element = el("div", { class: "chart-frame", tabindex: "0", role: "group", "aria-label": `${label}. Plus and minus zoom, arrows move, 0 resets.` }, this.picture);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.picture.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.picture.addEventListener("pointerdown", (event) => this.grab(event));
    this.draw();
  }

  at({ x, y }) {
    const [dx, dy] = this.shift;
    return [WIDTH / 2 + (x * (WIDTH / 2 - MARGIN) + dx) * this.scale, HEIGHT / 2 + (y * (HEIGHT / 2 - MARGIN / 2) + dy) * this.scale];
  }

  draw() {
    const places = this.points.map((point) => this.at(point));
    const byId = new Map(this.points.map((point, index) => [point.id, index]));
    const joined = this.lines.filter(({ from, to }) => byId.has(from) && byId.has(to)).map(({ from, to }) => {
      const [[x1, y1], [x2, y2]] = [places[byId.get(from)], places[byId.get(to)]];
      return svg("line", { class: "chart-line", x1, y1, x2, y2 });
    });
    const dots = this.points.map((point, index) => {
      const [cx, cy] = places[index];
      const dot = svg("circle", { class: `chart-dot ${point.language}${point.query ? " query" : ""}`, cx, cy, r: point.query ? 8 : 5 }, svg("title", {}, plain(point.word)));
      dot.addEventListener("click", () => this.onpick(point));
      return dot;
    });
    this.layer.replaceChildren(...joined, ...dots, ...this.labels(places));
  }

  /** Names beside their points; the query first, then by frequency; a name that would lie on another is left out until one zooms in. */
  labels(places) {
    const taken = [];
    const order = this.points.map((_, index) => index).sort((a, b) => Number(this.points[b].query ?? 0) - Number(this.points[a].query ?? 0) || (this.points[a].rank ?? 1e9) - (this.points[b].rank ?? 1e9));
    return order.flatMap((index) => {
      const point = this.points[index];
      const text = plain(point.word, 24);
      const [x, y] = places[index];
      const width = Array.from(text).length * LETTER_WIDTH + 6;
      const box = [x + 9, y - LABEL_HEIGHT / 2, x + 9 + width, y + LABEL_HEIGHT / 2];
      if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) return [];
      taken.push(box);
      return [svg("text", { class: `chart-label ${point.language}${point.query ? " query" : ""}`, x: x + 10, y: y + 5 }, text)];
    });
  }

  /** Zooms by a factor, keeping the middle (or a point of the picture) where it is. */
  zoom(factor, [x, y] = [WIDTH / 2, HEIGHT / 2]) {
    const scale = Math.min(20, Math.max(0.5, this.scale * factor));
    this.shift[0] += (x - WIDTH / 2) * (1 / scale - 1 / this.scale);
    this.shift[1] += (y - HEIGHT / 2) * (1 / scale - 1 / this.scale);
    this.scale = scale;
    this.draw();
  }

  /** Moves by units of the picture. */
  move(dx, dy) {
    this.shift[0] += dx / this.scale;
    this.shift[1] += dy / this.scale;
    this.draw();
  }

  reset() {
    this.scale = 1;
    this.shift = [0, 0];
    this.draw();
  }

  key(event) {
    const actions = {
      "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.reset(),
      ArrowLeft: () => this.move(60, 0), ArrowRight: () => this.move(-60, 0), ArrowUp: () => this.move(0, 60), ArrowDown: () => this.move(0, -60),
    };
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  fromScreen(event) {
    const frame = this.picture.getBoundingClientRect();
    return [((event.clientX - frame.left) / frame.width) * WIDTH, ((event.clientY - frame.top) / frame.height) * HEIGHT];
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, this.fromScreen(event));
  }

  grab(event) {
    if (event.target.classList.contains("chart-dot")) return;
    let last = this.fromScreen(event);
    const moved = (next) => {
      const now = this.fromScreen(next);
      this.move(now[0] - last[0], now[1] - last[1]);
      last = now;
    };
    const released = () => {
      this.picture.removeEventListener("pointermove", moved);
      removeEventListener("pointerup", released);
      removeEventListener("pointercancel", released);
    };
    this.picture.addEventListener("pointermove", moved);
    addEventListener("pointerup", released);
    addEventListener("pointercancel", released);
  }

  /** The picture as an SVG file that needs no style sheet. */
  asSvg() {
    const copy = this.picture.cloneNode(true);
    const [drawn, copied] = [this.picture, copy].map((root) => [...root.querySelectorAll("rect, line, circle, text")]);
    drawn.forEach((element, index) => {
      const style = getComputedStyle(element);
      for (const name of KEPT) copied[index].setAttribute(name, style.getPropertyValue(name));
      copied[index].removeAttribute("class");
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", WIDTH);
    copy.setAttribute("height", HEIGHT);
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  }

  /** The picture as a PNG file, twice as large for sharp print. */
  async asPng() {
    const address = URL.createObjectURL(this.asSvg());
    try {
      const image = new Image();
      image.src = address;
      await image.decode();
      const canvas = el("canvas", { width: WIDTH * 2, height: HEIGHT * 2 });
      canvas.getContext("2d").drawImage(image, 0, 0, WIDTH * 2, HEIGHT * 2);
      return await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
    } finally {
      URL.revokeObjectURL(address);
    }
  }
}

/** Offers a blob as a download. */
export function saveAs(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = el("a", { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
