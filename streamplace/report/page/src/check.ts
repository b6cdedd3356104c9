/** Problems on which the models differ from Python, and how: at once and move by move. */

import type { ProblemPart } from "./document";
import { instanceOf } from "./model/instance";
import { Loads } from "./model/loads";
import { problemData } from "./read";
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
