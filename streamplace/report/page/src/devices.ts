/** Devices with their loads: legend, places to drop an operator, and settings to change. */

import { at } from "./document";
import { button, h, named, put, replace } from "./dom";
import { FULL, type Facts } from "./facts";
import { deviceColour, patternOf } from "./palette";
import type { Situation } from "./situation";
import { counted, number, percent } from "./text";
import type { WhatIf } from "./whatif";

const MAX_DEVICES = 120;
/** Most devices in the sentence about a loss. */
const MAX_NAMED = 6;

interface Row {
  readonly element: HTMLElement;
  readonly away: HTMLButtonElement;
  readonly bar: HTMLElement;
  readonly value: HTMLElement;
  readonly words: HTMLElement;
}

export class DeviceList {
  readonly element: HTMLElement;
  private readonly rows: Row[] = [];
  private readonly loss = h("p", { class: "hint loss", "aria-live": "polite" });

  constructor(
    private readonly facts: Facts,
    private readonly whatif: () => WhatIf | undefined,
  ) {
    const list = h("div", { class: "devices" });
    const count = Math.min(MAX_DEVICES, facts.devices.length);
    for (let a = 0; a < count; a++) {
      this.rows.push(this.row(a));
      put(list, this.rows[a].element);
    }
    const rest = facts.devices.length - count;
    this.element = h(
      "section",
      { class: "panel" },
      h("h3", {}, "Devices"),
      this.loss,
      list,
      rest > 0 && h("p", { class: "hint" }, `And ${counted(rest, "device")} more.`),
    );
  }

  update(situation: Situation): void {
    const whatif = this.whatif();
    this.loss.textContent = whatif ? lossOf(whatif, this.facts) : "";
    const counts = new Int32Array(this.facts.devices.length);
    for (let v = 0; v < situation.place.length; v++) counts[situation.place[v]]++;
    this.rows.forEach((row, a) => {
      const load = situation.device(a);
      const { bottleneck } = situation;
      const limits = bottleneck.device === a && bottleneck.load > FULL;
      row.bar.style.width = `${100 * Math.min(1, load)}%`;
      row.element.classList.toggle("over", limits && bottleneck.kind === "device");
      row.element.classList.toggle("limits", limits);
      row.element.classList.toggle("unused", counts[a] === 0);
      row.value.textContent = percent(load);
      const isAway = whatif?.state.away?.device === a;
      row.element.classList.toggle("away", isAway);
      row.away.hidden = !whatif;
      row.away.textContent = isAway ? "Put back" : "×";
      row.away.setAttribute("aria-label", isAway ? `Put ${this.facts.device(a)} back` : `Take ${this.facts.device(a)} away`);
      const cards = [
        situation.egress(a) > 0 && `sends ${percent(situation.egress(a))}`,
        situation.ingress(a) > 0 && `receives ${percent(situation.ingress(a))}`,
      ].filter(Boolean);
      const parts = [counted(counts[a], "operator"), ...cards, this.facts.limitOf(situation, a)];
      row.words.textContent = parts.filter(Boolean).join(" · ");
    });
  }

  private row(a: number): Row {
    const bar = h("span", { class: "fill" });
    const value = h("span", { class: "load" });
    const words = h("span", { class: "words" });
    const summary = h(
      "summary",
      {},
      tag(a),
      h("span", { class: "name" }, named(this.facts.device(a))),
      value,
      h("span", { class: "meter", "aria-hidden": "true" }, bar),
      words,
    );
    const settings = h("div", { class: "settings" });
    const details = h("details", {}, summary, settings);
    details.addEventListener("toggle", () => details.open && this.fill(settings, a));
    const away = button("×", () => this.lose(a), { title: "Only its operators move" });
    const element = h("div", { class: "device", "data-device": a }, details, away);
    return { element, away, bar, value, words };
  }

  /** Take a device away, or put it back. */
  private lose(a: number): void {
    const whatif = this.whatif();
    if (whatif?.state.away?.device === a) whatif.putBack();
    else if (whatif?.takeAway(a) === false) {
      this.loss.textContent = `Without ${this.facts.device(a)}, no places are found for its operators while all others stay.`;
    }
  }

  /** What a device has, and what can be changed of it. */
  private fill(settings: HTMLElement, a: number): void {
    const { devices } = this.facts.problem;
    if (!devices) return;
    const mips = at(devices.mips, a);
    const facts = `${counted(at(devices.cores, a), "core")} of ${number(mips)} MIPS`;
    const whatif = this.whatif();
    replace(settings, h("p", { class: "hint" }, facts));
    if (!whatif) return;
    put(
      settings,
      field("Speed, times", whatif.state.speed[a], 0.01, (value) => whatif.setSpeed(a, value)),
      devices.price !== undefined &&
        field("Price per hour", whatif.state.price[a], 0, (value) => whatif.setPrice(a, value)),
    );
  }
}

/** What is carried without the device that is away, in sentences; "" if none is. */
function lossOf(whatif: WhatIf, facts: Facts): string {
  const { away, place } = whatif.state;
  if (!away) return "";
  const name = facts.device(away.device);
  const counts = new Map<number, number>();
  place.forEach((a, v) => away.place[v] === away.device && counts.set(a, (counts.get(a) ?? 0) + 1));
  const moves = [...counts].sort((a, b) => b[1] - a[1]).map(([a, count]) => `${number(count)} to ${facts.device(a)}`);
  const more = moves.length > MAX_NAMED ? `, and more to ${counted(moves.length - MAX_NAMED, "other device")}` : "";
  const only = place.every((a, v) => a === away.place[v] || away.place[v] === away.device);
  const reached = whatif.situation.throughput;
  return [
    `Without ${name}, ${reached < 1 ? "at least " : ""}${percent(reached)} is carried; with it, ${percent(whatif.throughputBefore)}.`,
    moves.length === 0 ? "It runs no operator." : `${only ? "Only its" : "Its"} operators move: ${moves.slice(0, MAX_NAMED).join(", ")}${more}.`,
    only ? "" : "Others were moved by hand.",
  ].join(" ").trim();
}

/** Number and colour of a device. */
export function tag(a: number): HTMLElement {
  const element = h("span", { class: `tag pattern${patternOf(a)}` }, String(a + 1));
  element.style.backgroundColor = deviceColour(a);
  return element;
}

export function field(
  label: string,
  value: number,
  least: number,
  act: (value: number) => void,
): HTMLElement {
  const input = h("input", { type: "number", step: "any", min: least, value: Number(value.toPrecision(10)) });
  input.addEventListener("input", () => {
    const given = input.valueAsNumber;
    if (Number.isFinite(given) && given >= least && given <= 1e12) act(given);
  });
  return h("label", { class: "field" }, label, input);
}
