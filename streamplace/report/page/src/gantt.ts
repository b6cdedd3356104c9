/** A pass as a chart: what every device runs, from when to when, and the critical path. */

import { h } from "./dom";
import { ON_DEVICE, type Theme, deviceColour, mixed, theme } from "./palette";
import { CanvasPen } from "./pen";
import type { Times } from "./situation";
import { fitting, seconds, shown } from "./text";
import { spentOn } from "./verdict";

export interface GanttSource {
  readonly operators: readonly string[];
  readonly devices: readonly string[];
  readonly times: () => Times | undefined;
  readonly place: () => ArrayLike<number>;
  readonly selected: () => number;
  readonly select: (operator: number) => void;
}

interface Bar {
  readonly operator: number;
  readonly row: number;
}

const LABEL = 118;
const AXIS = 26;

export class Gantt {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "gantt", role: "img" });
  private readonly about = h("p", { class: "hint", "aria-live": "off" });
  private bars: Bar[] = [];
  private rowOf: { device: number; first: number; rows: number }[] = [];
  private nRows = 0;
  private begin = 0;
  private end = 1;
  private row = 22;
  private grip: { x: number; begin: number; moved: boolean } | undefined;

  constructor(private readonly source: GanttSource) {
    this.element = h("div", { class: "pass" }, this.canvas, this.about);
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.listen();
  }

  /** Show a pass anew, all of it. */
  show(): void {
    const times = this.source.times();
    const isKnown = times !== undefined && Number.isFinite(times.makespan);
    this.element.classList.toggle("unknown", !isKnown);
    if (!isKnown) return;
    this.begin = 0;
    this.end = times.makespan || 1;
    this.lay(times);
    this.describe(times);
    this.draw();
  }

  zoom(factor: number, centre = 0.5): void {
    const span = this.end - this.begin;
    const middle = this.begin + centre * span;
    const next = span / factor;
    const whole = this.source.times()?.makespan || 1;
    if (next > whole) [this.begin, this.end] = [0, whole];
    else [this.begin, this.end] = [middle - centre * next, middle + (1 - centre) * next];
    this.draw();
  }

  /** Rows by device, one for each core that is used at a time. */
  private lay(times: Times): void {
    const place = this.source.place();
    const byDevice: number[][] = this.source.devices.map(() => []);
    for (let v = 0; v < place.length; v++) byDevice[place[v]].push(v);
    this.bars = [];
    this.rowOf = [];
    let row = 0;
    byDevice.forEach((operators, device) => {
      if (operators.length === 0) return;
      operators.sort((u, v) => times.start[u] - times.start[v] || times.finish[u] - times.finish[v]);
      const free: number[] = [];
      for (const operator of operators) {
        let lane = free.findIndex((end) => end <= times.start[operator]);
        if (lane < 0) lane = free.length;
        free[lane] = times.finish[operator];
        this.bars.push({ operator, row: row + lane });
      }
      this.rowOf.push({ device, first: row, rows: free.length });
      row += free.length;
    });
    this.nRows = row;
    this.row = Math.min(26, Math.max(5, 1400 / Math.max(1, row)));
    this.canvas.style.height = `${AXIS + this.nRows * this.row + 6 * this.rowOf.length + 4}px`;
  }

  private top(row: number): number {
    const before = this.rowOf.filter(({ first }) => first <= row).length - 1;
    return AXIS + row * this.row + 6 * before;
  }

  draw(): void {
    const times = this.source.times();
    const context = this.canvas.getContext("2d");
    const { clientWidth: w, clientHeight: height } = this.canvas;
    if (!times || !context || w === 0) return;
    if (this.bars.length !== this.source.place().length) this.lay(times);
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const look = theme();
    const pen = new CanvasPen(context);
    this.drawAxis(pen, look, w, height);
    const x = this.scaleTo(w);
    const critical = new Set(times.chain.filter((p) => p.stream < 0).map((p) => p.operator));
    const tops = new Map(this.rowOf.flatMap(({ first, rows }) =>
      Array.from({ length: rows }, (_, i) => [first + i, this.top(first + i)] as const)));
    const middles = new Map<number, number>();
    context.save();
    context.beginPath();
    context.rect(LABEL, 0, w - LABEL, height);
    context.clip();
    for (const { operator, row } of this.bars) {
      const top = tops.get(row) ?? 0;
      middles.set(operator, top + this.row / 2);
      const [left, right] = [x(times.start[operator]), x(times.finish[operator])];
      if (right < LABEL || left > w) continue;
      this.drawBar(pen, look, operator, left, right, top, critical.has(operator));
    }
    this.drawPath(pen, look, times, x, middles);
    context.restore();
    this.drawLabels(pen, look);
  }

  private scaleTo(w: number): (time: number) => number {
    const factor = (w - LABEL - 12) / (this.end - this.begin || 1);
    return (time) => LABEL + (time - this.begin) * factor;
  }

  private drawAxis(pen: CanvasPen, look: Theme, w: number, height: number): void {
    const x = this.scaleTo(w);
    const span = this.end - this.begin;
    const raw = span / Math.max(2, Math.floor((w - LABEL) / 110));
    const size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * size).find((candidate) => candidate >= raw) ?? raw;
    for (let time = Math.ceil(this.begin / step) * step; time <= this.end * (1 + 1e-9); time += step) {
      pen.line([x(time), AXIS - 6, x(time), height], { colour: look.line, width: 1 });
      pen.text(Math.min(x(time) + 4, w - 52), 10, seconds(Math.abs(time) < step / 1e6 ? 0 : time), 11, look.soft);
    }
  }

  private drawBar(
    pen: CanvasPen,
    look: Theme,
    operator: number,
    left: number,
    right: number,
    top: number,
    critical: boolean,
  ): void {
    const wide = Math.max(1, right - left - 0.5);
    const high = Math.max(3, this.row - 3);
    const colour = deviceColour(this.source.place()[operator]);
    pen.rect(left, top, wide, high, Math.min(3, wide / 3), critical ? colour : mixed(look.paper, colour, 0.55));
    if (critical) {
      pen.frame(left + 0.75, top + 0.75, Math.max(0.5, wide - 1.5), high - 1.5, Math.min(3, wide / 3), {
        colour: look.limit,
        width: 1.5,
      });
    }
    if (operator === this.source.selected()) {
      pen.frame(left - 2, top - 2, wide + 4, high + 4, 4, { colour: look.accent, width: 2 });
    }
    if (this.row < 14 || wide < 30) return;
    const name = fitting(this.source.operators[operator], wide - 8, 6.4);
    pen.text(left + 5, top + high / 2, name, 11, critical || !look.dark ? ON_DEVICE : look.ink);
  }

  /** The pieces of the critical path that are no bars: sending, and waiting for a core. */
  private drawPath(
    pen: CanvasPen,
    look: Theme,
    times: Times,
    x: (time: number) => number,
    middles: ReadonlyMap<number, number>,
  ): void {
    const { chain } = times;
    chain.forEach((piece, i) => {
      if (piece.what === "running") return;
      const next = chain.slice(i + 1).find((later) => later.what === "running")?.operator;
      const from = middles.get(piece.operator) ?? 0;
      const to = next === undefined ? from : (middles.get(next) ?? from);
      const dashed = piece.stream < 0;
      const low = this.row / 2 - 2;
      const points = dashed
        ? [x(piece.begin), to + low, x(piece.end), to + low]
        : [x(piece.begin), from, x(piece.end), to];
      pen.line(points, { colour: look.limit, width: 2, dashed });
    });
  }

  private drawLabels(pen: CanvasPen, look: Theme): void {
    pen.rect(0, 0, LABEL - 6, this.canvas.clientHeight, 0, look.paper);
    for (const { device, first, rows } of this.rowOf) {
      const top = this.top(first);
      const high = rows * this.row - 3;
      pen.rect(0, top, 5, high, 2, deviceColour(device));
      if (rows * this.row < 11) continue;
      const name = fitting(this.source.devices[device], 80, 6.4);
      pen.text(11, top + Math.min(high, this.row - 3) / 2, `${device + 1}  ${name}`, 11.5, look.ink, true);
    }
  }

  private describe(times: Times): void {
    const words = `One pass takes ${seconds(times.makespan)}. Its critical path: ${spentOn(times)}.`;
    this.canvas.setAttribute("aria-label", words);
    this.about.textContent = `${words} Bars with a red outline are on it, lines are transfers, broken lines waits.`;
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 200), this.share(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      this.grip = { x: event.clientX, begin: this.begin, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.pull(event));
    canvas.addEventListener("pointerup", (event) => {
      if (this.grip && !this.grip.moved) this.source.select(this.barAt(event));
      this.grip = undefined;
    });
  }

  private share(event: MouseEvent): number {
    const rect = this.canvas.getBoundingClientRect();
    const at = (event.clientX - rect.left - LABEL) / Math.max(1, rect.width - LABEL - 12);
    return Math.min(1, Math.max(0, at));
  }

  private pull(event: PointerEvent): void {
    if (!this.grip) {
      const v = this.barAt(event);
      const times = this.source.times();
      this.canvas.title =
        v < 0 || !times
          ? ""
          : `${shown(this.source.operators[v])}: ${seconds(times.start[v])} to ${seconds(times.finish[v])}`;
      return;
    }
    const dx = event.clientX - this.grip.x;
    if (Math.abs(dx) > 4) this.grip.moved = true;
    const span = this.end - this.begin;
    this.begin = this.grip.begin - (dx * span) / Math.max(1, this.canvas.clientWidth - LABEL - 12);
    this.end = this.begin + span;
    this.draw();
  }

  private barAt(event: MouseEvent): number {
    const times = this.source.times();
    const rect = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - rect.left, event.clientY - rect.top];
    const x = this.scaleTo(rect.width);
    const hit = this.bars.find(({ operator, row }) => {
      const top = this.top(row);
      if (!times || py < top || py > top + this.row) return false;
      return px >= x(times.start[operator]) - 1 && px <= x(times.finish[operator]) + 1;
    });
    return hit ? hit.operator : -1;
  }
}
