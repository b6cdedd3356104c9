/** While an operator is dragged: the devices on which it can be dropped, and what would come of it. */

import { tag } from "./devices";
import { h, named, put, replace } from "./dom";
import type { Facts } from "./facts";
import type { Box } from "./scene";
import { percent } from "./text";
import type { WhatIf } from "./whatif";

const MAX_DEVICES = 48;

export class Tray {
  readonly element = h("div", { class: "tray", hidden: true });
  private readonly words = h("p", { class: "preview" });
  private box: Box | undefined;
  private whatif: WhatIf | undefined;
  private above = -1;

  constructor(private readonly facts: Facts) {}

  open(box: Box, whatif: WhatIf): void {
    this.box = box;
    this.whatif = whatif;
    this.above = -1;
    const zones = h("div", { class: "zones" });
    this.facts.devices.slice(0, MAX_DEVICES).forEach((_, a) => {
      const why = whatif.forbidden(box.operators, a);
      const home = box.operators.every((v) => whatif.state.place[v] === a);
      const zone = h("div", { class: `zone${why && !home ? " closed" : ""}`, "data-device": a });
      put(zone, tag(a), h("span", { class: "name" }, named(this.facts.device(a))));
      put(zones, zone);
    });
    this.words.textContent = "Drop it on a device.";
    replace(this.element, this.words, zones);
    this.element.hidden = false;
  }

  over(device: number): void {
    const { box, whatif } = this;
    if (device === this.above || !box || !whatif) return;
    this.above = device;
    for (const zone of document.querySelectorAll("[data-device]")) {
      zone.classList.toggle("above", zone.getAttribute("data-device") === String(device));
    }
    if (device < 0) {
      this.words.textContent = "Drop it on a device.";
      return;
    }
    const why = whatif.forbidden(box.operators, device);
    this.words.textContent =
      why ||
      `On ${this.facts.device(device)}: throughput ${percent(whatif.preview(box.operators, device))}`;
  }

  close(): void {
    this.element.hidden = true;
    this.box = undefined;
    for (const zone of document.querySelectorAll(".above")) zone.classList.remove("above");
  }

  /** Say for some seconds why something cannot be. */
  warn(words: string): void {
    replace(this.element, this.words);
    this.words.textContent = words;
    this.element.hidden = false;
    window.setTimeout(() => {
      if (!this.box) this.element.hidden = true;
    }, 4000);
  }
}
