/** One way to draw, on two kinds of paper: a canvas, or elements of SVG. */

import { s } from "./dom";

export interface Stroke {
  readonly colour: string;
  readonly width: number;
  readonly dashed?: boolean;
}

export interface Pen {
  rect(x: number, y: number, w: number, h: number, radius: number, fill: string): void;
  frame(x: number, y: number, w: number, h: number, radius: number, stroke: Stroke): void;
  /** Straight pieces x, y, x, y, … */
  line(points: readonly number[], stroke: Stroke): void;
  /** A smooth curve through points x, y, x, y, …, from left to right or from top to bottom. */
  curve(points: readonly number[], stroke: Stroke, down: boolean): void;
  arrow(x: number, y: number, size: number, colour: string, down: boolean): void;
  text(x: number, y: number, text: string, size: number, colour: string, bold?: boolean): void;
}

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export class CanvasPen implements Pen {
  constructor(private readonly context: CanvasRenderingContext2D) {
    context.textBaseline = "middle";
    context.lineJoin = "round";
  }

  rect(x: number, y: number, w: number, h: number, radius: number, fill: string): void {
    this.context.fillStyle = fill;
    if (radius < 0.5) {
      this.context.fillRect(x, y, w, h);
      return;
    }
    this.context.beginPath();
    this.context.roundRect(x, y, w, h, radius);
    this.context.fill();
  }

  frame(x: number, y: number, w: number, h: number, radius: number, stroke: Stroke): void {
    this.context.beginPath();
    this.context.roundRect(x, y, w, h, radius);
    this.draw(stroke);
  }

  line(points: readonly number[], stroke: Stroke): void {
    this.context.beginPath();
    for (let i = 0; i < points.length; i += 2) {
      if (i === 0) this.context.moveTo(points[0], points[1]);
      else this.context.lineTo(points[i], points[i + 1]);
    }
    this.draw(stroke);
  }

  curve(points: readonly number[], stroke: Stroke, down: boolean): void {
    this.context.beginPath();
    this.context.moveTo(points[0], points[1]);
    for (const [a, b, c, d, x, y] of pieces(points, down)) this.context.bezierCurveTo(a, b, c, d, x, y);
    this.draw(stroke);
  }

  arrow(x: number, y: number, size: number, colour: string, down: boolean): void {
    const { context } = this;
    const [a, b, c, d] = barbs(x, y, size, down);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(a, b);
    context.lineTo(c, d);
    context.closePath();
    context.fillStyle = colour;
    context.fill();
  }

  text(x: number, y: number, text: string, size: number, colour: string, bold = false): void {
    this.context.font = `${bold ? 600 : 400} ${size}px ${FONT}`;
    this.context.fillStyle = colour;
    this.context.fillText(text, x, y);
  }

  private draw(stroke: Stroke): void {
    this.context.strokeStyle = stroke.colour;
    this.context.lineWidth = stroke.width;
    this.context.setLineDash(stroke.dashed ? [4, 4] : []);
    this.context.stroke();
  }
}

export class SvgPen implements Pen {
  constructor(private readonly parent: SVGGElement) {}

  rect(x: number, y: number, w: number, h: number, radius: number, fill: string): void {
    this.parent.append(s("rect", { x, y, width: w, height: h, rx: radius, fill }));
  }

  frame(x: number, y: number, w: number, h: number, radius: number, stroke: Stroke): void {
    const place = { x, y, width: w, height: h, rx: radius };
    this.parent.append(s("rect", { ...place, ...attributes(stroke) }));
  }

  line(points: readonly number[], stroke: Stroke): void {
    this.parent.append(s("polyline", { points: points.join(" "), ...attributes(stroke) }));
  }

  curve(points: readonly number[], stroke: Stroke, down: boolean): void {
    const d = pieces(points, down).map((piece) => `C${piece.join(" ")}`);
    this.parent.append(s("path", { d: `M${points[0]} ${points[1]}${d.join("")}`, ...attributes(stroke) }));
  }

  arrow(x: number, y: number, size: number, colour: string, down: boolean): void {
    const points = [x, y, ...barbs(x, y, size, down)].join(" ");
    this.parent.append(s("polygon", { points, fill: colour }));
  }

  text(x: number, y: number, text: string, size: number, colour: string, bold = false): void {
    const attributes = { x, y, "font-size": size, fill: colour, "font-weight": bold ? 600 : 400 };
    this.parent.append(s("text", { ...attributes, "dominant-baseline": "central" }, text));
  }
}

function attributes(stroke: Stroke): Record<string, string | number | null> {
  return {
    fill: "none",
    stroke: stroke.colour,
    "stroke-width": stroke.width,
    "stroke-dasharray": stroke.dashed ? "4 4" : null,
  };
}

/** Pieces of a curve: two points that steer, and the end. */
function pieces(points: readonly number[], down: boolean): number[][] {
  const all: number[][] = [];
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x1, y1] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
    const half = down ? reach(y0, y1) : reach(x0, x1);
    all.push(down ? [x0, y0 + half, x1, y1 - half, x1, y1] : [x0 + half, y0, x1 - half, y1, x1, y1]);
  }
  return all;
}

/** The two points behind the tip of an arrow. */
function barbs(x: number, y: number, size: number, down: boolean): number[] {
  const side = size * 0.45;
  return down ? [x - side, y - size, x + side, y - size] : [x - size, y - side, x - size, y + side];
}

function reach(x0: number, x1: number): number {
  return Math.max(Math.abs(x1 - x0) / 2, x1 < x0 ? 60 : 0);
}
