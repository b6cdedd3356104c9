/** Charts with axes: points, lines and spreads, drawn as SVG. */

import { h, s } from "./dom";
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

const W = 520;
const H = 300;
const LEFT = 58;
const RIGHT = 28;
const TOP = 14;
const BOTTOM = 44;

/** Most points whose labels are written; the others are shown by the pointer alone. */
const MOST_LABELS = 14;

/** Series differ in colour, and in the shape of their points or the dashes of their lines. */
const DASHES = ["", "7 4", "2 3", "10 4 2 4", "5 2", "1 4"];

interface Axis {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

export function chart(options: ChartOptions, series: readonly Series[]): HTMLElement {
  const points = series.flatMap((one) => one.points);
  const figure = h("figure", { class: "chart" }, h("figcaption", {}, options.title));
  if (points.length === 0) return figure;
  const x = axis(points.map(([value]) => value), LEFT, W - RIGHT, options.logX ?? false, true);
  const y = axis(points.map(([, value]) => value), H - BOTTOM, TOP, false, options.free ?? false);
  const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": summary(options, series) });
  for (const tick of y.ticks) {
    svg.append(
      s("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y.at(tick), y2: y.at(tick) }),
      s("text", { class: "tick", x: LEFT - 8, y: y.at(tick) + 4, "text-anchor": "end" }, number(tick, 3)),
    );
  }
  for (const tick of x.ticks) {
    svg.append(
      s("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: TOP, y2: H - BOTTOM }),
      s("text", { class: "tick", x: x.at(tick), y: H - BOTTOM + 17, "text-anchor": "middle" }, number(tick, 3)),
    );
  }
  svg.append(
    s("text", { class: "axis", x: (LEFT + W - RIGHT) / 2, y: H - 6, "text-anchor": "middle" }, options.x),
    s("text", { class: "axis", x: 12, y: (TOP + H - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TOP + H - BOTTOM) / 2})` }, options.y),
  );
  series.forEach((one, i) => svg.append(...draw(one, i, x, y)));
  figure.append(svg);
  if (series.length > 1) figure.append(legend(series));
  return figure;
}

function draw(one: Series, i: number, x: Axis, y: Axis): SVGElement[] {
  const at = one.points.map(([a, b]) => [x.at(a), y.at(b)] as const);
  const tone = `series${i % 6}`;
  const label = (k: number): string => {
    const [a, b] = one.points[k];
    return `${one.labels?.[k] ?? one.name}: ${number(a)}, ${number(b)}`;
  };
  const marks = at.map(([px, py], k) =>
    s("path", { class: `mark ${tone}`, d: mark(i, px, py) }, s("title", {}, label(k))),
  );
  const names = at.map((_, k) => one.labels?.[k] ?? "");
  const frame = { left: LEFT, right: W, top: 0, bottom: H - BOTTOM };
  const named = one.labels && at.length <= MOST_LABELS
    ? spots(at, names, frame).map(([px, py], k) => s("text", { class: "tick", x: px, y: py }, names[k]))
    : [];
  if (one.kind === "points") return [...marks, ...named];
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

/** Values of several rows side by side: every value, the quartiles as a box, and the median. */
export function spread(
  title: string,
  label: string,
  rows: readonly { readonly name: string; readonly values: readonly number[] }[],
): HTMLElement {
  const pitch = 30;
  const left = 150;
  const height = rows.length * pitch + 44;
  const figure = h("figure", { class: "chart wide" }, h("figcaption", {}, title));
  const values = rows.flatMap((row) => row.values);
  if (values.length === 0) return figure;
  const x = axis(values, left, W - RIGHT, false, true);
  const svg = s("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": title });
  for (const tick of x.ticks) {
    svg.append(
      s("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: 4, y2: height - 38 }),
      s("text", { class: "tick", x: x.at(tick), y: height - 22, "text-anchor": "middle" }, number(tick, 3)),
    );
  }
  svg.append(s("text", { class: "axis", x: (left + W - RIGHT) / 2, y: height - 5, "text-anchor": "middle" }, label));
  rows.forEach((row, i) => {
    const y = i * pitch + pitch / 2 + 2;
    const sorted = [...row.values].sort((a, b) => a - b);
    svg.append(s("text", { class: "tick", x: left - 10, y: y + 4, "text-anchor": "end" }, row.name));
    if (sorted.length === 0) return;
    const q = (share: number): number => x.at(quantile(sorted, share));
    svg.append(
      s("rect", { class: "quartiles", x: q(0.25), y: y - 8, width: Math.max(1, q(0.75) - q(0.25)), height: 16, rx: 3 }),
      s("line", { class: "median", x1: q(0.5), x2: q(0.5), y1: y - 9, y2: y + 9 }),
      ...sorted.slice(0, 400).map((value, k) =>
        s("circle", { class: "dot", cx: x.at(value), cy: y + ((k % 5) - 2) * 2.2, r: 2.2 })),
    );
  });
  figure.append(svg);
  return figure;
}

export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(sorted.length - 1, low + 1);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}
