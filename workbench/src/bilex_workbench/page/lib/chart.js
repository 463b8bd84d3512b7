// A plot of points with names that can be zoomed, moved, and saved as a picture.

import { el, svg } from "./dom.js";
import { plain } from "./words.js";

const WIDTH = 640;
const HEIGHT = 480;
const MARGIN = 60;
const LABEL_HEIGHT = 21;
// Where a name may stand beside its point, the best place first: to the right, left, above, below, and the corners.
const PLACES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]];
const KEPT = ["fill", "stroke", "stroke-width", "stroke-opacity", "font-size", "font-family", "font-weight", "opacity", "paint-order", "stroke-linejoin"];

/** The plot: `points` have x and y in -1…1, a word, a language, and `query` on one of them; `lines` join their numbers; `best` is the word of the best answer. */
export class Chart {
  constructor({ points, lines, label, best = null, onpick }) {
    const origin = points.find(({ query }) => query);
    const answers = points.filter(({ language }) => language !== origin?.language);
    this.best = answers.find(({ word }) => word === best) ?? answers.find(({ id }) => lines.some(({ from, to }) => (from === origin?.id && to === id) || (to === origin?.id && from === id)));
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
    document.fonts?.ready.then(() => this.draw());
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

  /** Names beside their points: the query, the best answer, then the most frequent. A name that finds no free place is left out until one zooms in. */
  labels(places) {
    const pen = document.createElement("canvas").getContext("2d");
    const { fontFamily } = getComputedStyle(document.querySelector("h1") ?? document.body);
    const weight = (point) => (point.query ? 2 : point === this.best ? 1 : 0);
    const order = this.points.map((_, index) => index).sort((a, b) => weight(this.points[b]) - weight(this.points[a]) || (this.points[a].rank ?? 1e9) - (this.points[b].rank ?? 1e9));
    const taken = this.points.flatMap((point, index) => (weight(point) ? [this.around(places[index], 8)] : []));
    return order.flatMap((index) => {
      const point = this.points[index];
      const text = plain(point.word, 24);
      pen.font = `${weight(point) ? "700 " : ""}17px ${fontFamily}`;
      const width = pen.measureText(text).width + 8;
      const box = this.freePlace(places[index], width, taken);
      if (!box) return [];
      taken.push(box);
      return [svg("text", { class: `chart-label ${point.language}${weight(point) ? " strong" : ""}`, x: box[0] + 4, y: box[1] + 16 }, text)];
    });
  }

  around([x, y], radius) {
    return [x - radius, y - radius, x + radius, y + radius];
  }

  /** The first place for a name that lies inside the picture and on no other, as [left, top, right, bottom]. */
  freePlace([x, y], width, taken) {
    const boxes = PLACES.map(([dx, dy]) => {
      const left = x + dx * 8 + (dx > 0 ? 0 : dx < 0 ? -width : -width / 2);
      const top = y + dy * (dx ? 12 : 20) - LABEL_HEIGHT / 2;
      return [left, top, left + width, top + LABEL_HEIGHT];
    });
    return boxes.find((box) => box[0] >= 0 && box[1] >= 0 && box[2] <= WIDTH && box[3] <= HEIGHT && !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]));
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
