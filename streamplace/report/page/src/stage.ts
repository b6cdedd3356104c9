/** A scene to look at: pan, zoom, select, drag onto a device, and the same by keyboard. */

import { h } from "./dom";
import type { Look } from "./paint";
import { Finder, MARGIN, type Scene, scaleFor } from "./scene";
import { type Sheet, sheetFor } from "./sheet";
import type { View } from "./view";

export interface StageActions {
  readonly label: string;
  readonly look: (scene: Scene) => Look;
  /** A box is chosen, -1 for none. */
  readonly select: (box: number) => void;
  readonly selected: () => number;
  readonly hover: (box: number, x: number, y: number) => void;
  /** Dragging; absent where nothing can be moved. */
  readonly drag?: Dragging;
  /** A key that is not the stage's own; whether it did something. */
  readonly key: (event: KeyboardEvent) => boolean;
}

export interface Dragging {
  readonly begin: (box: number) => void;
  /** The pointer is above a device (-1: none). */
  readonly over: (device: number) => void;
  readonly end: (device: number) => void;
}

interface Press {
  readonly x: number;
  readonly y: number;
  readonly box: number;
  moved: boolean;
}

const STEP = 60;
const MIN_HEIGHT = 132;

/** Most pixels that a stage is high. */
export function mostHeight(): number {
  return Math.max(340, Math.min(900, 0.66 * window.innerHeight));
}

/** Height of a scene at a width, in pixels. */
export function heightFor(scene: Scene, w: number): number {
  return Math.max(MIN_HEIGHT, scene.height * scaleFor(scene, w, mostHeight()) + 2 * MARGIN);
}

export class Stage {
  readonly element: HTMLElement;
  private sheet: Sheet;
  private scene: Scene;
  private finder: Finder;
  private press: Press | undefined;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private frame = 0;
  private dirty = false;

  constructor(
    scene: Scene,
    private readonly view: View,
    private readonly actions: StageActions,
  ) {
    this.scene = scene;
    this.finder = new Finder(scene);
    this.sheet = sheetFor(scene.boxes.length + scene.lines.length, view);
    this.element = h(
      "div",
      { class: "stage", tabindex: 0, role: "application", "aria-label": actions.label },
      this.sheet.element,
    );
    view.onChange(() => this.schedule(false));
    new ResizeObserver(() => this.redraw()).observe(this.element);
    this.listen();
  }

  show(scene: Scene): void {
    this.scene = scene;
    this.finder = new Finder(scene);
    const next = sheetFor(scene.boxes.length + scene.lines.length, this.view);
    this.sheet.element.replaceWith(next.element);
    this.sheet = next;
    this.redraw();
  }

  redraw(): void {
    this.schedule(true);
  }

  /** Show all of the scene, on as little height as it needs. */
  fit(): void {
    const w = this.element.clientWidth;
    if (w === 0) return;
    this.element.style.height = `${heightFor(this.scene, w)}px`;
    this.view.fit(this.scene, w, this.element.clientHeight);
  }

  zoom(factor: number): void {
    this.view.zoom(factor, this.element.clientWidth / 2, this.element.clientHeight / 2);
  }

  reveal(b: number): void {
    const box = this.scene.boxes[b];
    if (box) this.view.reveal(box.x, box.y, this.element.clientWidth, this.element.clientHeight);
  }

  private schedule(dirty: boolean): void {
    this.dirty ||= dirty;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const look = (): Look => this.actions.look(this.scene);
      if (this.dirty) this.sheet.draw(look());
      else this.sheet.follow(look);
      this.dirty = false;
    });
  }

  private listen(): void {
    const { element } = this;
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    element.addEventListener("pointerup", (event) => this.up(event));
    element.addEventListener("pointercancel", (event) => this.cancel(event));
    element.addEventListener("pointerleave", () => this.actions.hover(-1, 0, 0));
    element.addEventListener("focus", () => this.redraw());
    element.addEventListener("blur", () => this.redraw());
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("keydown", (event) => {
      if (this.key(event) || this.actions.key(event)) event.preventDefault();
    });
  }

  private at(event: { clientX: number; clientY: number }): [number, number] {
    const rect = this.element.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  }

  private boxAt(px: number, py: number): number {
    const { x, y, scale } = this.view;
    return this.finder.at(x + px / scale, y + py / scale);
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    const [x, y] = this.at(event);
    this.pointers.set(event.pointerId, { x, y });
    this.press = { x, y, box: this.boxAt(x, y), moved: this.pointers.size > 1 };
    this.element.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    const [x, y] = this.at(event);
    const last = this.pointers.get(event.pointerId);
    if (!last || !this.press) {
      this.actions.hover(this.boxAt(x, y), x, y);
      return;
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, x, y);
    else this.pull(event, x, y, last);
    this.pointers.set(event.pointerId, { x, y });
  }

  private pull(
    event: PointerEvent,
    x: number,
    y: number,
    last: { x: number; y: number },
  ): void {
    const press = this.press;
    if (!press) return;
    const { drag } = this.actions;
    const far = Math.hypot(x - press.x, y - press.y) > 5;
    if (far && !press.moved) {
      press.moved = true;
      this.actions.hover(-1, 0, 0);
      if (press.box >= 0 && drag) drag.begin(press.box);
    }
    if (!press.moved) return;
    if (press.box >= 0 && drag) drag.over(this.deviceAt(event));
    else this.view.pan(x - last.x, y - last.y);
  }

  private pinch(pointer: number, x: number, y: number): void {
    const other = [...this.pointers].find(([id]) => id !== pointer)?.[1];
    const last = this.pointers.get(pointer);
    if (!other || !last) return;
    const before = Math.hypot(last.x - other.x, last.y - other.y);
    const after = Math.hypot(x - other.x, y - other.y);
    if (before > 10) this.view.zoom(after / before, (x + other.x) / 2, (y + other.y) / 2);
  }

  private up(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    const press = this.press;
    if (this.pointers.size > 0 || !press) return;
    this.press = undefined;
    if (!press.moved) this.actions.select(press.box);
    else if (press.box >= 0) this.actions.drag?.end(this.deviceAt(event));
  }

  private cancel(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    if (this.press?.moved && this.press.box >= 0) this.actions.drag?.end(-1);
    this.press = undefined;
  }

  /** The device below the pointer: one that is shown beside the stage, or a lane. */
  private deviceAt(event: PointerEvent): number {
    for (const element of document.elementsFromPoint(event.clientX, event.clientY)) {
      const device = element.closest("[data-device]")?.getAttribute("data-device");
      if (device) return Number(device);
    }
    const [px, py] = this.at(event);
    const y = this.view.y + py / this.view.scale;
    const inside = px >= 0 && px <= this.element.clientWidth;
    const lane = this.scene.lanes.find((one) => y >= one.y && y <= one.y + one.height);
    return inside && lane ? lane.device : -1;
  }

  private wheel(event: WheelEvent): void {
    const focused = document.activeElement === this.element;
    if (!event.ctrlKey && !event.metaKey && !focused) return;
    event.preventDefault();
    const [x, y] = this.at(event);
    const pixels = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
    this.view.zoom(Math.exp(-pixels / (event.ctrlKey ? 120 : 400)), x, y);
  }

  private key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const directions: Record<string, [number, number]> = {
      ArrowRight: [1, 0],
      ArrowLeft: [-1, 0],
      ArrowDown: [0, 1],
      ArrowUp: [0, -1],
    };
    const direction = directions[event.key];
    if (direction && event.shiftKey) {
      this.view.pan(-STEP * direction[0], -STEP * direction[1]);
      return true;
    }
    if (direction) return this.walk(...direction);
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "Home") this.fit();
    else if (event.key === "Escape") this.actions.select(-1);
    else return false;
    return true;
  }

  /** Select the nearest box in a direction; the first one where none is selected. */
  private walk(dx: number, dy: number): boolean {
    const { boxes } = this.scene;
    const from = boxes[this.actions.selected()];
    let best = from ? -1 : 0;
    let least = Infinity;
    if (from) {
      boxes.forEach((box, b) => {
        const along = (box.x - from.x) * dx + (box.y - from.y) * dy;
        const across = Math.abs((box.x - from.x) * dy) + Math.abs((box.y - from.y) * dx);
        const distance = along + 2.5 * across;
        if (along > 1 && distance < least) [best, least] = [b, distance];
      });
    }
    if (best >= 0 && best < boxes.length) {
      this.actions.select(best);
      this.reveal(best);
    }
    return true;
  }
}
