/** The original placement beside the present one. */

import { h, replace } from "./dom";
import type { Facts } from "./facts";
import type { Look } from "./paint";
import type { Scene } from "./scene";
import { type Sheet, sheetFor } from "./sheet";
import type { Situation } from "./situation";
import { percent } from "./text";
import type { View } from "./view";

export class Compare {
  readonly element = h("div", { class: "original", role: "region", "aria-label": "Original placement" });
  readonly table = h("div", { class: "scroll numbers-table", hidden: true });
  private readonly frame = h("div", { class: "stage still" });
  private sheet: Sheet | undefined;
  private scene: Scene | undefined;

  constructor(
    private readonly view: View,
    private readonly look: (scene: Scene) => Look,
  ) {
    this.element.append(h("p", { class: "caption" }, "Original"), this.frame);
    view.onChange(() => this.redraw());
  }

  /** As high as the stage beside it. */
  resize(height: number): void {
    this.frame.style.height = `${height}px`;
    this.redraw();
  }

  show(scene: Scene): void {
    this.scene = scene;
    this.sheet = sheetFor(scene.boxes.length + scene.lines.length, this.view);
    replace(this.frame, this.sheet.element);
    requestAnimationFrame(() => this.redraw());
  }

  redraw(): void {
    if (this.element.hidden || !this.scene) return;
    this.sheet?.draw(this.look(this.scene));
  }

  /** Numbers of both, by device. */
  describe(facts: Facts, before: Situation, now: Situation): void {
    const rows: [string, string, string][] = [
      ["Throughput", percent(before.throughput), percent(now.throughput)],
      ["Bottleneck", facts.resource(before.bottleneck), facts.resource(now.bottleneck)],
      ...facts.devices.slice(0, 40).map((_, a): [string, string, string] => [
        `CPU of ${facts.device(a)}`,
        percent(before.device(a)),
        percent(now.device(a)),
      ]),
    ];
    const head = ["", "Original", "Now"].map((text) => h("th", { scope: "col" }, text));
    const body = rows.map(([name, old, present]) =>
      h(
        "tr",
        { class: old === present ? "same" : "" },
        h("th", { scope: "row" }, h("bdi", {}, name)),
        h("td", {}, old),
        h("td", {}, present),
      ),
    );
    replace(this.table, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)));
  }
}
