/** The selected operator: its loads, its neighbours, and its possible devices. */

import { at } from "./document";
import { button, h, named, replace } from "./dom";
import type { Facts } from "./facts";
import type { Box } from "./scene";
import type { Situation } from "./situation";
import { bytes, counted, number, percent, shown } from "./text";
import type { WhatIf } from "./whatif";

const MAX_PREVIEWS = 64;
const MAX_NEIGHBOURS = 12;

export class Detail {
  readonly element = h("section", { class: "panel detail" });
  readonly select = h("select", { "aria-label": "Device of the operator" });

  private box: Box | undefined;
  private whatif: WhatIf | undefined;

  constructor(
    private readonly facts: Facts,
    private readonly actions: {
      readonly move: (device: number) => void;
      readonly choose: (operator: number) => void;
    },
  ) {
    this.select.addEventListener("change", () => actions.move(Number(this.select.value)));
    for (const event of ["pointerdown", "focus"]) {
      this.select.addEventListener(event, () => this.fillSelect(true));
    }
  }

  show(box: Box | undefined, situation: Situation | undefined, whatif: WhatIf | undefined): void {
    this.box = box;
    this.whatif = whatif;
    const focused = document.activeElement === this.select;
    if (!box) {
      const words = whatif
        ? "Select an operator to see what it takes. Drag it onto a device, or choose one here."
        : "Select an operator to see what it takes.";
      replace(this.element, h("h3", {}, "Operator"), h("p", { class: "hint" }, words));
      return;
    }
    replace(
      this.element,
      h("h3", {}, named(shown(box.name))),
      this.numbers(box, situation),
      whatif && h("label", { class: "field wide" }, "Device", this.select),
      ...this.neighbours(box, situation),
    );
    this.fillSelect(focused);
    if (focused) this.select.focus();
  }

  private numbers(box: Box, situation: Situation | undefined): HTMLElement {
    const { operators } = this.facts.problem;
    const list = h("dl", { class: "numbers" });
    const add = (name: string, value: string): void => {
      if (value) list.append(h("dt", {}, name), h("dd", {}, value));
    };
    const [v] = box.operators;
    if (box.operators.length > 1) {
      add("Operators", number(box.operators.length));
    } else {
      add("Kind", shown(at(operators.kind, v)).replace(/^“.*”$/, ""));
      const rate = this.facts.inputRate(v);
      if (rate !== undefined) add("Input", `${number(rate)} tuples/s`);
      const reached = situation?.reached(v);
      if (reached !== undefined) add("Source runs at", percent(reached));
    }
    if (situation) {
      const devices = new Set(box.operators.map((u) => situation.place[u]));
      const [device] = devices;
      add("On", devices.size > 1 ? counted(devices.size, "device") : this.facts.device(device));
      const share = box.operators.reduce((sum, u) => sum + this.facts.share(u, situation.place[u]), 0);
      if (share > 0) add("CPU", `${percent(share)} of the device`);
    }
    const { constant } = operators;
    if (constant !== undefined) {
      const mips = box.operators.reduce((sum, u) => sum + at(constant, u), 0);
      if (mips > 0) add("At any rate", `${number(mips)} MIPS`);
    }
    const messages = box.operators.reduce((sum, u) => sum + this.facts.messages(u), 0);
    if (messages > 0) add("Messages", `${number(messages)} MIPS`);
    const most = box.operators.length > 1 ? 0 : at(operators.max_rate ?? 0, v);
    if (most > 0) add("Of a subtask", `${number(most)} tuples/s at most`);
    const memory = box.operators.reduce((sum, u) => sum + at(operators.memory, u), 0);
    if (memory > 0) add("Memory", bytes(memory));
    return list;
  }

  /** Fill the choice of a device, with what would come of each where somebody is about to choose. */
  private fillSelect(choosing: boolean): void {
    const { box, whatif } = this;
    if (!box || !whatif) return;
    const device = whatif.state.place[box.operators[0]];
    const previews = choosing && this.facts.devices.length <= MAX_PREVIEWS;
    const options = this.facts.devices.map((_, a) => {
      const why = a === device ? "" : whatif.forbidden(box.operators, a);
      const result = why
        ? "not allowed"
        : previews
          ? percent(whatif.preview(box.operators, a))
          : "";
      const text = `${a + 1}  ${this.facts.device(a)}${result ? ` — ${result}` : ""}`;
      return h("option", { value: a, disabled: why !== "", selected: a === device }, text);
    });
    replace(this.select, ...options);
    this.select.value = String(device);
  }

  private neighbours(box: Box, situation: Situation | undefined): (HTMLElement | false)[] {
    const { streams } = this.facts.problem;
    const inside = new Set(box.operators);
    const into: HTMLElement[] = [];
    const out: HTMLElement[] = [];
    streams.source.forEach((u, e) => {
      const v = streams.target[e];
      if (inside.has(u) === inside.has(v)) return;
      const [list, other] = inside.has(u) ? [out, v] : [into, u];
      if (list.length < MAX_NEIGHBOURS) list.push(this.neighbour(e, other, situation));
    });
    return [
      into.length > 0 && h("div", { class: "neighbours" }, h("h4", {}, "Receives from"), ...into),
      out.length > 0 && h("div", { class: "neighbours" }, h("h4", {}, "Sends to"), ...out),
    ];
  }

  private neighbour(e: number, other: number, situation: Situation | undefined): HTMLElement {
    const { streams } = this.facts.problem;
    const [a, b] = [situation?.place[streams.source[e]], situation?.place[streams.target[e]]];
    const size = this.facts.traffic[e];
    const words = [
      size > 0 && `${bytes(size)}/s`,
      situation && (a === b ? "same device" : `link ${percent(situation.link(a ?? 0, b ?? 0))} full`),
    ];
    const chosen = button(this.facts.name(other), () => this.actions.choose(other), { class: "link" });
    return h("p", {}, chosen, " ", h("span", { class: "soft" }, words.filter(Boolean).join(" · ")));
  }
}
