/** Which part of a scene is seen; several stages may share one. */

import { type Scene, scaleFor } from "./scene";

export class View {
  x = 0;
  y = 0;
  scale = 1;
  private readonly listeners: (() => void)[] = [];

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Show all of a scene in a window of some pixels. */
  fit(scene: Scene, w: number, h: number): void {
    this.scale = scaleFor(scene, w, h);
    this.x = scene.width / 2 - w / 2 / this.scale;
    this.y = scene.height / 2 - h / 2 / this.scale;
    this.changed();
  }

  pan(dx: number, dy: number): void {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.changed();
  }

  /** Zoom around a point given in pixels. */
  zoom(factor: number, px: number, py: number): void {
    const scale = Math.min(4, Math.max(0.01, this.scale * factor));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.changed();
  }

  /** Move as little as makes a point visible. */
  reveal(x: number, y: number, w: number, h: number, margin = 90): void {
    const edge = margin / this.scale;
    const [right, bottom] = [this.x + w / this.scale, this.y + h / this.scale];
    const dx = Math.min(0, x - edge - this.x) + Math.max(0, x + edge - right);
    const dy = Math.min(0, y - edge - this.y) + Math.max(0, y + edge - bottom);
    if (dx === 0 && dy === 0) return;
    this.x += dx;
    this.y += dy;
    this.changed();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}
