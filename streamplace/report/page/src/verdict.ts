/** The result in large figures, beside the former one. */

import { h, replace } from "./dom";
import type { PlacementPart, ProblemPart } from "./document";
import type { Facts } from "./facts";
import type { Situation, Times } from "./situation";
import { counted, number, percent, seconds, shown } from "./text";

export interface Outcome {
  readonly situation: Situation;
  readonly times: Times | undefined;
  readonly rate: number;
  readonly cost: number | undefined;
}

interface Card {
  readonly label: string;
  readonly value: string;
  readonly note: string;
  readonly lead?: boolean;
}

export class Verdict {
  readonly element = h("section", { class: "verdict", "aria-label": "Result" });
  private readonly cards = h("dl", { class: "cards" });
  private readonly sentence = h("p", { class: "sentence" });

  constructor(
    private readonly problem: ProblemPart,
    private readonly facts: Facts,
  ) {
    this.element.append(this.cards, this.sentence);
    const assumed = (problem.assumptions ?? []).map((sentence) => shown(sentence, 300)).join("; ");
    if (assumed) this.element.append(h("p", { class: "soft" }, "Assumed: ", h("bdi", {}, assumed)));
  }

  show(placement: PlacementPart, now: Outcome, before: Outcome | undefined): void {
    const cards = [
      this.throughput(now, before),
      this.measured(now),
      this.makespan(placement, now, before),
      this.price(now, before),
      this.objective(placement, before !== undefined),
    ].filter((card): card is Card => card !== undefined);
    if (isPass(this.problem)) cards.sort((a, b) => Number(b.label === "One pass") - Number(a.label === "One pass"));
    replace(this.cards, ...cards.map((card, i) => element({ ...card, lead: i === 0 })));
    const { times } = now;
    const byPass = isPass(this.problem) && times;
    this.sentence.textContent = byPass
      ? `The critical path of one pass: ${spentOn(times)}.`
      : this.facts.sentence(now.situation);
    this.sentence.classList.toggle("over", !byPass && now.situation.bottleneck.load > 1);
  }

  /** Say that the values mean nothing at this rate. */
  warn(): void {
    this.sentence.classList.add("over");
    this.sentence.textContent =
      "At this rate, the inputs of an operator that fires once per set differ, so these values do not hold.";
  }

  private throughput(now: Outcome, before: Outcome | undefined): Card {
    const total = this.facts.totalRate * now.rate;
    const reached = now.situation.throughput;
    const was = before ? ` · was ${percent(before.situation.throughput)}` : "";
    return {
      label: "Throughput",
      value: percent(reached),
      note: `${number(reached * total)} of ${number(total)} tuples/s${was}`,
    };
  }

  /** Expected measurement of a measured graph, with the confidence of its errors. */
  private measured(now: Outcome): Card | undefined {
    const { errors } = this.problem;
    const { pressure } = now.situation;
    const offered = this.facts.totalRate * now.rate;
    const reached = now.situation.throughput;
    if (!errors || isPass(this.problem) || (reached >= 1 && pressure <= 0)) return undefined;
    const carried = reached < 1 ? reached * offered : offered / pressure;
    const [low, high] = [errors.low, errors.high].map((factor) => Math.min(factor * carried, offered));
    return { label: "Tuples/s, likely", value: `${number(low)} to ${number(high)}`, note: `with ${errors.words}` };
  }

  private makespan(
    placement: PlacementPart,
    now: Outcome,
    before: Outcome | undefined,
  ): Card | undefined {
    const times = now.times ?? placement.one_pass;
    if (!times || !isPass(this.problem)) return undefined;
    const { bound } = placement;
    const limit = bound !== undefined && !before ? `no less than ${seconds(bound)}` : "";
    const was = before?.times ? `was ${seconds(before.times.makespan)}` : "";
    const note = now.times ? was || limit || "one set of tuples, from the sources to the end" : "as placed originally";
    return { label: "One pass", value: seconds(times.makespan), note };
  }

  private price(now: Outcome, before: Outcome | undefined): Card | undefined {
    if (now.cost === undefined) return undefined;
    const used = new Set(Array.from(now.situation.place)).size;
    const was = before?.cost === undefined ? "" : ` · was ${number(before.cost)}`;
    return { label: "Price", value: `${number(now.cost)} / h`, note: `${counted(used, "device")} used${was}` };
  }

  /** The value by an objective that the page does not compute itself. */
  private objective(placement: PlacementPart, changed: boolean): Card | undefined {
    const objective = this.problem.objective;
    if (!objective) return undefined;
    const { bound } = placement;
    if (objective.name === "throughput" || isPass(this.problem)) {
      if (isPass(this.problem) || bound === undefined) return undefined;
      if (changed) return { label: "Proven bound", value: percent(bound), note: "of the original problem" };
      const gap = bound > 0 ? `this placement reaches ${percent(placement.throughput / bound)} of it` : "";
      return { label: "Proven bound", value: percent(bound), note: gap };
    }
    const note = changed ? "of the original placement" : "by the objective of this report";
    return { label: objective.name, value: placement.words, note };
  }
}

/** Whether placements are judged by the time of one pass. */
export function isPass(problem: ProblemPart): boolean {
  return problem.objective?.name.startsWith("makespan") ?? false;
}

/** What the time of a pass is spent on, along its critical path. */
export function spentOn(times: Times): string {
  const totals = new Map<string, number>();
  for (const { what, begin, end } of times.chain) totals.set(what, (totals.get(what) ?? 0) + end - begin);
  return [...totals].map(([what, total]) => `${seconds(total)} ${what}`).join(", ");
}

function element(card: Card): HTMLElement {
  return h(
    "div",
    { class: card.lead ? "card lead" : "card" },
    h("dt", {}, card.label),
    h("dd", { class: "figure" }, card.value),
    h("dd", { class: "note" }, card.note),
  );
}
