/** The placements of a graph, the best one first, each with its value. */

import { button, h, named, put } from "./dom";
import type { PlacementPart, ProblemPart } from "./document";
import { percent, shown } from "./text";

export class Placements {
  readonly element = h("div", { class: "placements", role: "group", "aria-label": "Placements" });
  private readonly tabs = new Map<PlacementPart, HTMLButtonElement>();

  constructor(problem: ProblemPart, use: (index: number) => void) {
    for (const index of ranked(problem)) {
      const placement = problem.placements[index];
      const tab = button("", () => use(index));
      put(tab, named(shown(placement.name, 40)), h("span", { class: "value" }, valueOf(problem, placement)));
      if (carriesAll(problem, placement)) {
        put(tab, h("span", { class: "full" }, `fullest ${percent(placement.bottleneck.load)}`));
      }
      this.tabs.set(placement, tab);
      put(this.element, tab);
    }
  }

  show(current: PlacementPart | undefined): void {
    for (const [placement, tab] of this.tabs) {
      tab.setAttribute("aria-pressed", String(placement === current));
    }
  }
}

/** Rows of the placements, best first; of equal ones the least full, then what sends the least. */
export function ranked({ placements, objective }: ProblemPart): number[] {
  const sign = objective?.sense === "min" ? 1 : -1;
  const order = placements.map(({ value, bottleneck, loads }) => [
    sign * value,
    bottleneck.load,
    loads.links.reduce((sum, [, , load]) => sum + load, 0),
  ]);
  const differ = (a: number, b: number): number => (Math.abs(a - b) <= 1e-9 * Math.abs(b) ? 0 : a - b);
  return [...placements.keys()].sort((i, j) => order[i].map((a, k) => differ(a, order[j][k])).find(Boolean) ?? 0);
}

/** Whether only how full resources are tells a placement from others. */
function carriesAll({ objective }: ProblemPart, { value, bottleneck }: PlacementPart): boolean {
  return objective?.name === "throughput" && value >= 1 && bottleneck.load > 0;
}

function valueOf({ objective }: ProblemPart, { value, words }: PlacementPart): string {
  return objective?.name === "throughput" ? percent(value) : words;
}
