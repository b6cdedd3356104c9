/** What a scene is drawn on: SVG up to some hundred boxes, a canvas above. */

import { h, s } from "./dom";
import { MIN_DETAILED, type Look, paint } from "./paint";
import { CanvasPen, FONT, SvgPen } from "./pen";
import type { View } from "./view";

/** Boxes and lines up to which a scene is SVG. */
const MAX_SVG = 900;
/** Boxes and lines above which moving the view shows a picture until it rests. */
const MAX_LIVE = 3000;
const REST_MS = 90;

export interface Sheet {
  readonly element: HTMLElement | SVGElement;
  draw(look: Look): void;
  /** Follow the view; the look is made only where all is drawn anew. */
  follow(look: () => Look): void;
}

export function sheetFor(size: number, view: View): Sheet {
  return size <= MAX_SVG ? new SvgSheet(view) : new CanvasSheet(view, size > MAX_LIVE);
}

class SvgSheet implements Sheet {
  readonly element = s("svg", { class: "sheet", "aria-hidden": "true", "font-family": FONT });
  private readonly group = s("g");
  private detailed = true;

  constructor(private readonly view: View) {
    this.element.append(this.group);
  }

  draw(look: Look): void {
    this.group.replaceChildren();
    const { width, height } = look.scene;
    const all = { x: -1e3, y: -1e3, w: width + 2e3, h: height + 2e3 };
    paint(new SvgPen(this.group), look, { ...all, scale: this.view.scale });
    this.detailed = this.view.scale >= MIN_DETAILED;
    this.move();
  }

  follow(look: () => Look): void {
    if (this.detailed === this.view.scale >= MIN_DETAILED) this.move();
    else this.draw(look());
  }

  private move(): void {
    const { x, y, scale } = this.view;
    this.group.setAttribute("transform", `scale(${scale}) translate(${-x} ${-y})`);
  }
}

class CanvasSheet implements Sheet {
  readonly element = h("canvas", { class: "sheet", "aria-hidden": "true" });
  private readonly picture = document.createElement("canvas");
  private seen = { x: 0, y: 0, scale: 1 };
  private rest: number | undefined;

  constructor(
    private readonly view: View,
    private readonly heavy: boolean,
  ) {}

  draw(look: Look): void {
    const { element, view } = this;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const [w, h] = [element.clientWidth, element.clientHeight];
    if (w === 0 || h === 0) return;
    element.width = Math.round(w * ratio);
    element.height = Math.round(h * ratio);
    const context = element.getContext("2d");
    if (!context) return;
    context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, 0, 0);
    context.translate(-view.x, -view.y);
    const { x, y, scale } = view;
    paint(new CanvasPen(context), look, { x, y, w: w / scale, h: h / scale, scale });
    this.seen = { x, y, scale };
    this.picture.width = 0;
  }

  follow(look: () => Look): void {
    if (!this.heavy) {
      this.draw(look());
      return;
    }
    this.shift();
    if (this.rest !== undefined) clearTimeout(this.rest);
    this.rest = window.setTimeout(() => this.draw(look()), REST_MS);
  }

  /** Show the last picture where the view is now. */
  private shift(): void {
    const { element, picture, view, seen } = this;
    const context = element.getContext("2d");
    if (!context || element.width === 0) return;
    if (picture.width === 0) {
      picture.width = element.width;
      picture.height = element.height;
      picture.getContext("2d")?.drawImage(element, 0, 0);
    }
    const ratio = element.width / Math.max(1, element.clientWidth);
    const factor = view.scale / seen.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, element.width, element.height);
    context.drawImage(
      picture,
      (seen.x - view.x) * view.scale * ratio,
      (seen.y - view.y) * view.scale * ratio,
      picture.width * factor,
      picture.height * factor,
    );
  }
}
