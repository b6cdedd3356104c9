/** Charts with axes: points, lines and spreads, drawn as SVG. */

import { h, replace, s } from "./dom";
import { spots } from "./labels";
import { number } from "./text";

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [number, number])[];
  readonly kind: "line" | "points";
  readonly dashed?: boolean;
  /** What points are called, where they have names of their own. */
  readonly labels?: readonly string[];
}

export interface ChartOptions {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly logX?: boolean;
  /** Where 0 need not be seen. */
  readonly free?: boolean;
}

/** Width of a chart before it is on the page, and the least and largest one there. */
const W = 520;
const NARROW = 220;
const WIDE = 1100;
const RIGHT = 28;
const TOP = 14;
const BOTTOM = 44;
const FONT_SIZE = 11.5;

/** Series differ in colour, and in the shape of their points or the dashes of their lines. */
const DASHES = ["", "7 4", "2 3", "10 4 2 4", "5 2", "1 4"];

interface Axis {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

interface Frame {
  readonly left: number;
  readonly width: number;
  readonly height: number;
  readonly x: Axis;
  readonly y: Axis;
}

export function chart(options: ChartOptions, series: readonly Series[]): HTMLElement {
  const figure = h("figure", { class: "chart" }, h("figcaption", {}, options.title));
  if (series.some((one) => one.points.length > 0)) fluid(figure, (width) => drawn(options, series, width));
  return figure;
}

/** Draw anew for every width, so that letters keep their size. */
function fluid(figure: HTMLElement, draw: (width: number) => Node[]): void {
  const body = h("div", { class: "drawn" });
  figure.append(body);
  let last = 0;
  const show = (width: number): void => {
    if (width === last) return;
    last = width;
    replace(body, ...draw(width));
  };
  show(W);
  new ResizeObserver(([entry]) => {
    const { width } = entry.contentRect;
    if (width > 0) show(Math.round(Math.min(WIDE, Math.max(NARROW, width))));
  }).observe(body);
}

let pen: CanvasRenderingContext2D | null | undefined;

/** Width of a text in a chart. */
function widthOf(text: string): number {
  pen = pen ?? document.createElement("canvas").getContext("2d");
  if (!pen) return 7 * text.length;
  pen.font = `${FONT_SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** As much of a name as fits into a width. */
function cut(name: string, width: number): string {
  const letters = [...name];
  while (letters.length > 1 && widthOf(`${letters.join("")}…`) > width) letters.pop();
  return widthOf(name) <= width ? name : `${letters.join("")}…`;
}

function drawn(options: ChartOptions, series: readonly Series[], width: number): Node[] {
  const points = series.flatMap((one) => one.points);
  const height = width < 420 ? 250 : 300;
  const y = axis(points.map(([, value]) => value), height - BOTTOM, TOP, false, options.free ?? false);
  const left = 32 + Math.max(...y.ticks.map((tick) => widthOf(number(tick, 3))));
  const x = axis(points.map(([value]) => value), left, width - RIGHT, options.logX ?? false, true);
  const frame = { left, width, height, x, y };
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": summary(options, series) });
  for (const tick of y.ticks) {
    svg.append(
      s("line", { class: "grid", x1: left, x2: width - RIGHT, y1: y.at(tick), y2: y.at(tick) }),
      s("text", { class: "tick", x: left - 8, y: y.at(tick) + 4, "text-anchor": "end" }, number(tick, 3)),
    );
  }
  svg.append(...below(x, options.x, height, TOP, [left, width - RIGHT]));
  const middle = (TOP + height - BOTTOM) / 2;
  svg.append(
    s("text", { class: "axis", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, cut(options.y, height - BOTTOM)),
  );
  const named = series.map((one) => namesOf(one, frame));
  series.forEach((one, i) => svg.append(...draw(one, i, frame, named[i].marks)));
  const keys = named.flatMap(({ key }) => (key ? [key] : []));
  return [svg, ...(series.length > 1 ? [legend(series)] : []), ...keys];
}

/** Lines, numbers and words of the axis at the bottom; numbers that would touch are left out. */
function below(x: Axis, label: string, height: number, top: number, [from, to]: readonly [number, number]): SVGElement[] {
  const texts = x.ticks.map((tick) => number(tick, 3));
  const room = 10 + Math.max(...texts.map(widthOf));
  const gap = Math.abs(x.at(x.ticks[x.ticks.length - 1]) - x.at(x.ticks[0])) / Math.max(1, x.ticks.length - 1);
  const every = Math.max(1, Math.ceil(room / Math.max(1, gap)));
  return [
    ...x.ticks.map((tick) =>
      s("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: top, y2: height - BOTTOM })),
    ...x.ticks.flatMap((tick, i) =>
      i % every === 0
        ? [s("text", { class: "tick", x: x.at(tick), y: height - BOTTOM + 17, "text-anchor": "middle" }, texts[i])]
        : []),
    s("text", { class: "axis", x: (from + to) / 2, y: height - 6, "text-anchor": "middle" }, cut(label, to - from)),
  ];
}

interface Names {
  readonly marks: readonly SVGElement[];
  /** Names by number, where they have no room beside their points. */
  readonly key?: HTMLElement;
}

/** Names of points beside them or, where these would overlap, numbers and a list of names. */
function namesOf(one: Series, { left, width, height, x, y }: Frame): Names {
  const { labels } = one;
  if (!labels) return { marks: [] };
  const at = one.points.map(([a, b]) => [x.at(a), y.at(b)] as const);
  const frame = { left, right: width, top: 0, bottom: height - BOTTOM };
  const numbers = labels.map((_, k) => String(k + 1));
  const whole = spots(at, labels, frame, widthOf);
  const texts = whole.includes(undefined) ? numbers : labels;
  const marks = (texts === labels ? whole : spots(at, numbers, frame, widthOf)).flatMap((spot, k) =>
    spot ? [s("text", { class: "tick", x: spot[0], y: spot[1] }, texts[k])] : [],
  );
  if (texts === labels) return { marks };
  const items = labels.map((label, k) => h("li", {}, h("b", {}, numbers[k]), h("bdi", {}, label)));
  return { marks, key: h("ol", { class: "legend" }, ...items) };
}

function draw(one: Series, i: number, { x, y }: Frame, names: readonly SVGElement[]): SVGElement[] {
  const at = one.points.map(([a, b]) => [x.at(a), y.at(b)] as const);
  const tone = `series${i % 6}`;
  const label = (k: number): string => {
    const [a, b] = one.points[k];
    return `${one.labels?.[k] ?? one.name}: ${number(a)}, ${number(b)}`;
  };
  const marks = at.map(([px, py], k) =>
    s("path", { class: `mark ${tone}`, d: mark(i, px, py) }, s("title", {}, label(k))),
  );
  if (one.kind === "points") return [...marks, ...names];
  const d = at
    .map(([px, py], k) => `${k === 0 ? "M" : "L"}${px} ${py}`)
    .join("");
  const dash = one.dashed ? "5 4" : DASHES[i % DASHES.length] || null;
  const line = s("path", { class: `curve ${tone}`, d, "stroke-dasharray": dash });
  return at.length <= 40 ? [line, ...marks] : [line];
}

/** A circle, square, triangle or diamond around a point. */
function mark(i: number, x: number, y: number): string {
  const r = 4;
  const shapes = [
    `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    `M${x} ${y - r - 1}l${r + 1} ${2 * r}h${-2 * r - 2}z`,
    `M${x} ${y - r - 1}l${r + 1} ${r + 1}l${-r - 1} ${r + 1}l${-r - 1} ${-r - 1}z`,
  ];
  return shapes[i % shapes.length];
}

function legend(series: readonly Series[]): HTMLElement {
  const items = series.map((one, i) => {
    const key = s("svg", { viewBox: "0 0 30 12", class: "key", "aria-hidden": "true" });
    const tone = `series${i % 6}`;
    if (one.kind !== "points") {
      const dash = one.dashed ? "5 4" : DASHES[i % DASHES.length] || null;
      key.append(s("path", { class: `curve ${tone}`, d: "M1 6H29", "stroke-dasharray": dash }));
    }
    key.append(s("path", { class: `mark ${tone}`, d: mark(i, 15, 6) }));
    return h("li", {}, key, h("bdi", {}, one.name));
  });
  return h("ul", { class: "legend" }, ...items);
}

function axis(values: readonly number[], from: number, to: number, log: boolean, free: boolean): Axis {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (log && low > 0) {
    const [a, b] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high * 1.0001))];
    const ticks = Array.from({ length: b - a + 1 }, (_, i) => 10 ** (a + i));
    const every = Math.ceil(ticks.length / 7);
    const at = (value: number): number => from + ((Math.log10(value) - a) / Math.max(1, b - a)) * (to - from);
    return { at, ticks: ticks.filter((_, i) => i % every === 0) };
  }
  if (!free) low = Math.min(0, low);
  if (high - low < 1e-12 * Math.max(1, Math.abs(high))) [low, high] = [low - 0.5, high + 0.5];
  const step = nice((high - low) / 5);
  low = Math.floor(low / step + 1e-9) * step;
  high = Math.ceil(high / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) =>
    Number((low + i * step).toPrecision(12)),
  );
  return { at: (value) => from + ((value - low) / (high - low)) * (to - from), ticks };
}

function nice(raw: number): number {
  const size = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((k) => k * size).find((step) => step >= raw * 0.999) ?? raw;
}

function summary(options: ChartOptions, series: readonly Series[]): string {
  const names = series.slice(0, 12).map((one) => one.name).join(", ");
  return `${options.title}: ${options.y} by ${options.x}; ${names}`;
}

interface Row {
  readonly name: string;
  readonly values: readonly number[];
}

/** Values of several rows side by side: every value, the quartiles as a box, and the median. */
export function spread(title: string, label: string, rows: readonly Row[]): HTMLElement {
  const figure = h("figure", { class: "chart" }, h("figcaption", {}, title));
  if (rows.some((row) => row.values.length > 0)) {
    fluid(figure, (width) => [spreadOf(title, label, rows, width)]);
  }
  return figure;
}

/** Most dots of a row. */
const MAX_DOTS = 400;

function spreadOf(title: string, label: string, rows: readonly Row[], width: number): SVGElement {
  const longest = Math.max(...rows.map((row) => widthOf(row.name)));
  const above = longest > 0.3 * width; // names stand above their rows where they leave no room
  const [pitch, left] = above ? [46, 14] : [30, longest + 22];
  const height = rows.length * pitch + BOTTOM;
  const x = axis(rows.flatMap((row) => row.values), left, width - RIGHT, false, true);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": title });
  svg.append(...below(x, label, height, 4, [left, width - RIGHT]));
  rows.forEach((row, i) => {
    const y = i * pitch + (above ? 32 : pitch / 2 + 2);
    const sorted = [...row.values].sort((a, b) => a - b);
    svg.append(
      above
        ? s("text", { class: "tick", x: 2, y: i * pitch + 13 }, cut(row.name, width - 4))
        : s("text", { class: "tick", x: left - 10, y: y + 4, "text-anchor": "end" }, row.name),
    );
    if (sorted.length === 0) return;
    const q = (share: number): number => x.at(quantile(sorted, share));
    const dots = Math.min(MAX_DOTS, sorted.length);
    svg.append(
      s("rect", { class: "quartiles", x: q(0.25), y: y - 8, width: Math.max(1, q(0.75) - q(0.25)), height: 16, rx: 3 }),
      s("line", { class: "median", x1: q(0.5), x2: q(0.5), y1: y - 9, y2: y + 9 }),
      ...Array.from({ length: dots }, (_, k) => {
        const value = quantile(sorted, dots === 1 ? 0.5 : k / (dots - 1));
        return s("circle", { class: "dot", cx: x.at(value), cy: y + ((k % 5) - 2) * 2.2, r: 2.2 });
      }),
    );
  });
  return svg;
}

export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(sorted.length - 1, low + 1);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}
