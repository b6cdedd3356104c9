/** A plan. */

import { type Series, chart } from "./chart";
import { h } from "./dom";
import type { PlanPart } from "./document";
import { type Cell, sortable } from "./table";
import { number, percent, shown } from "./text";

export function planSection(plan: PlanPart): HTMLElement {
  const element = h("section", { class: "block plan" }, h("h2", {}, "Plan"));
  if (plan.machines.length > 0) element.append(cards(plan), machines(plan));
  if (plan.curve.length > 0) element.append(...curve(plan));
  const free = Object.entries(plan.free);
  if (free.length > 0) {
    const words = free.map(([resource, share]) => `${percent(share)} of ${resource}`).join(", ");
    element.append(h("p", { class: "hint" }, `Free: ${words}.`));
  }
  return element;
}

function cards(plan: PlanPart): HTMLElement {
  const proof = plan.cheapest
    ? "proven: no plan costs less"
    : `no plan costs less than ${number(plan.bound)} (gap ${percent(plan.gap)})`;
  const items: [string, string, string][] = [
    [plan.priced ? "Price per hour" : "Machines", number(plan.cost), proof],
    ["Rate", `${number(plan.rate)}/s`, plan.carries === null ? "" : `carries up to ${number(plan.carries)} tuples/s`],
  ];
  return h(
    "dl",
    { class: "cards" },
    ...items.map(([label, value, note]) =>
      h(
        "div",
        { class: "card" },
        h("dt", {}, label),
        h("dd", { class: "figure" }, value),
        h("dd", { class: "note" }, note),
      ),
    ),
  );
}

function machines(plan: PlanPart): HTMLElement {
  const rows = plan.machines.map((machine): Cell[] => [
    { text: shown(machine.name) },
    { text: number(machine.number), value: machine.number },
    machine.price === null ? { text: "–" } : { text: number(machine.price), value: machine.price },
    { text: shown(machine.contents, 200) },
  ]);
  return sortable({ caption: "Machines", head: ["Type", "Number", "Price per hour", "Contents"], rows });
}

function listed(machines: Record<string, number>): string {
  return Object.entries(machines)
    .map(([name, count]) => `${count} × ${shown(name, 30)}`)
    .join(", ");
}

function curve(plan: PlanPart): HTMLElement[] {
  const series: Series[] = [
    { name: "cost of the plan", kind: "line", points: plan.curve.map((p) => [p.at, p.cost]) },
    {
      name: "proven bound",
      kind: "line",
      dashed: true,
      points: plan.curve.map((p) => [p.at, p.bound]),
    },
  ];
  const rows = plan.curve.map((point): Cell[] => [
    { text: number(point.at), value: point.at },
    { text: number(point.cost), value: point.cost },
    { text: number(point.bound), value: point.bound },
    { text: percent(point.gap), value: point.gap },
    { text: listed(point.machines) },
  ]);
  const head = ["Rate, tuples/s", "Cost", "Bound", "Gap", "Machines"];
  return [
    h(
      "div",
      { class: "charts" },
      chart({ title: "Cost against rate", x: "rate (tuples/s)", y: plan.priced ? "price per hour" : "machines" }, series),
    ),
    sortable({ caption: "The frontier", head, rows }),
  ];
}
