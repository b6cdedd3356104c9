/** What limits by the objective: a full resource, the critical path, or what Python marks. */

import type { PlacementPart, ProblemPart } from "./document";
import type { Facts } from "./facts";
import type { Look } from "./paint";
import type { Situation } from "./situation";
import { isPass } from "./verdict";
import { type WhatIf, timesOf } from "./whatif";

export type Marks = Pick<Look, "marked" | "markedStreams" | "byLoad">;

/** Marks of a situation: the one of `whatif`, or without it the one of the document. */
export function marksOf(
  problem: ProblemPart,
  facts: Facts,
  situation: Situation | undefined,
  placement: PlacementPart | undefined,
  whatif: WhatIf | false | undefined,
): Marks {
  const none = { marked: new Set<number>(), markedStreams: new Set<number>(), byLoad: false };
  if (!situation) return none;
  if (isPass(problem)) {
    const chain = timesOf(whatif, placement)?.chain ?? [];
    const running = chain.filter(({ what }) => what === "running");
    const sending = chain.filter(({ what }) => what === "sending");
    return {
      marked: new Set(running.map(({ operator }) => operator)),
      markedStreams: new Set(sending.map(({ stream }) => stream)),
      byLoad: false,
    };
  }
  if (problem.objective && problem.objective.name !== "throughput") {
    if (whatif && whatif.changed) return none;
    const { operators, streams } = placement?.marks ?? { operators: [], streams: [] };
    return { marked: new Set(operators), markedStreams: new Set(streams), byLoad: false };
  }
  return { ...none, marked: new Set(facts.filling(situation)), byLoad: true };
}
