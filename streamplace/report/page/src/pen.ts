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
  /** A smooth curve from left to right through points x, y, x, y, … */
  curve(points: readonly number[], stroke: Stroke): void;
  arrow(x: number, y: number, size: number, colour: string): void;
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

  curve(points: readonly number[], stroke: Stroke): void {
    this.context.beginPath();
    this.context.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) {
      const [x0, y0, x1, y1] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
      const half = reach(x0, x1);
      this.context.bezierCurveTo(x0 + half, y0, x1 - half, y1, x1, y1);
    }
    this.draw(stroke);
  }

  arrow(x: number, y: number, size: number, colour: string): void {
    const { context } = this;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - size, y - size * 0.45);
    context.lineTo(x - size, y + size * 0.45);
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

  curve(points: readonly number[], stroke: Stroke): void {
    let d = `M${points[0]} ${points[1]}`;
    for (let i = 2; i < points.length; i += 2) {
      const [x0, y0, x1, y1] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
      const half = reach(x0, x1);
      d += `C${x0 + half} ${y0} ${x1 - half} ${y1} ${x1} ${y1}`;
    }
    this.parent.append(s("path", { d, ...attributes(stroke) }));
  }

  arrow(x: number, y: number, size: number, colour: string): void {
    const points = `${x},${y} ${x - size},${y - size * 0.45} ${x - size},${y + size * 0.45}`;
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

function reach(x0: number, x1: number): number {
  return Math.max(Math.abs(x1 - x0) / 2, x1 < x0 ? 60 : 0);
}
