/** Problems on which the models differ from Python, and how: at once and move by move. */

import type { ProblemPart } from "./document";
import { Facts } from "./facts";
import { Filling, throughputOf } from "./model/filling";
import { instanceOf } from "./model/instance";
import { Loads } from "./model/loads";
import { problemData } from "./read";
import { situationOfDocument } from "./situation";
import { differenceOfLoads, firstDifference } from "./verify";

export function differences(problems: readonly ProblemPart[]): string[] {
  return problems.flatMap((problem) => {
    const first = firstDifference(problem) || differenceByMoves(problem);
    return first ? [`${problem.name}: ${first}`] : [];
  });
}

/** Move from every placement to the next, operator by operator, and compare what comes of it. */
function differenceByMoves(problem: ProblemPart): string {
  const data = problemData(problem);
  if (!data) return "";
  const instance = instanceOf(data);
  const loads = new Loads(instance, problem.placements[0].place);
  for (const placement of problem.placements) {
    placement.place.forEach((device, v) => loads.move(v, device));
    const differs = differenceOfLoads(instance, placement, loads);
    if (differs) return `${differs} after moves`;
  }
  return "";
}

/** Throughput of the first placement of every problem at another rate and other speeds. */
export function throughputsAt(problems: readonly ProblemPart[], rate: number, speed: number): number[] {
  return problems.map((problem) => {
    const data = problemData(problem);
    if (!data || !problem.devices) return NaN;
    const factors = problem.devices.name.map(() => speed);
    const instance = instanceOf(data, { rate, speed: factors });
    return throughputOf(new Loads(instance, problem.placements[0].place), new Filling(instance));
  });
}

/** What the page says of the first placement of every problem. */
export function sentences(problems: readonly ProblemPart[]): string[] {
  return problems.map((problem) => new Facts(problem).sentence(situationOfDocument(problem.placements[0])));
}
