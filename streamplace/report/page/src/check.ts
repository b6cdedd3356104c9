/** Whether the page computes what Python computed, for the placements of the document and after moves. */

import type { PassPart, PlacementPart, ProblemPart } from "./document";
import { Facts } from "./facts";
import { type Instance, instanceOf } from "./model/instance";
import { levelsOf } from "./model/levels";
import { Loads } from "./model/loads";
import { overloadedShares } from "./model/overload";
import { throughputOf } from "./model/steady";
import { criticalChain } from "./pass/chain";
import { Simulation } from "./pass/simulate";
import { type Queue, passOf } from "./pass/work";
import { problemData, rulesOf } from "./read";
import { situationOfDocument } from "./situation";
import { WhatIf } from "./whatif";

/** Largest difference, relative to the larger of 1 and the value. */
export const TOLERANCE = 1e-9;

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
    const differs = differenceOfLoads(problem, placement, loads);
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
    return throughputOf(new Loads(instance, problem.placements[0].place));
  });
}

/** Placements of every problem without each device in turn, and what the page says they carry; null without places. */
export function lossesOf(problems: readonly ProblemPart[]): ([number[], number] | null)[][] {
  return problems.map((problem) => {
    const whatif = new WhatIf(problem, problem.placements[0]);
    return (problem.devices?.name ?? []).map((_, a) =>
      whatif.takeAway(a) ? [Array.from(whatif.state.place), whatif.situation.throughput] : null,
    );
  });
}

/** What the page says of the first placement of every problem. */
export function sentences(problems: readonly ProblemPart[]): string[] {
  return problems.map((problem) => new Facts(problem).sentence(situationOfDocument(problem.placements[0])));
}

/** The first value of any placement that differs from Python's, in words; "" if none does. */
export function firstDifference(problem: ProblemPart): string {
  const data = problemData(problem);
  if (!data) return "";
  const instance = instanceOf(data);
  for (const placement of problem.placements) {
    const differs =
      differenceOfLoads(problem, placement, new Loads(instance, placement.place)) ||
      differenceOfPass(instance, placement);
    if (differs) return `${differs} of the placement ${placement.name}`;
  }
  return "";
}

export function differenceOfLoads(
  problem: ProblemPart,
  placement: PlacementPart,
  loads: Loads,
): string {
  const { d, flow } = loads.instance;
  if (!close(throughputOf(loads), placement.throughput)) return "the throughput";
  const shares = overloadedShares(loads);
  const reached = new Map(Array.from(flow.sources, (v, k) => [v, shares[k]]));
  if (placement.sources.some(([v, share]) => !close(reached.get(v) ?? 0, share))) {
    return "the rate of a source";
  }
  const levels = levelsOf(loads, rulesOf(problem));
  const given = placement.levels ?? [];
  const isAlike = levels.every(({ share, sources, stuck }, i) => {
    const rows = given[i]?.sources;
    return close(share, given[i]?.share ?? 0) && `${sources}/${stuck}` === `${rows}/${given[i]?.stuck}`;
  });
  if (levels.length !== given.length || !isAlike) return "a level of sources";
  const part = placement.loads;
  for (let a = 0; a < d; a++) {
    if (!close(loads.device(a), part.devices[a])) return "the load of a device";
    if (!close(loads.egress(a), part.egress[a])) return "the load of an outgoing card";
    if (!close(loads.ingress(a), part.ingress[a])) return "the load of an incoming card";
  }
  if (part.links.some(([a, b, load]) => !close(loads.link(a, b), load))) {
    return "the load of a link";
  }
  const pressure = placement.pressure ?? loads.peak;
  const isSame = close(loads.bottleneck().load, placement.bottleneck.load) && close(loads.peak, pressure);
  return isSame ? "" : "the largest load";
}

/** The rules of a pass that the page computes; absent for others. */
export function queueOf(placement: PlacementPart): Queue | undefined {
  const rules = placement.one_pass;
  if (!rules || rules.network !== "free" || rules.pause > 0) return undefined;
  if (rules.queue === "fifo") return "fifo";
  const ranked = rules.queue === "priority" || rules.queue === "order";
  return ranked && placement.priority ? (rules.queue as Queue) : undefined;
}

function differenceOfPass(instance: Instance, placement: PlacementPart): string {
  const queue = queueOf(placement);
  const given = placement.one_pass;
  if (!queue || !given) return "";
  const simulation = new Simulation(passOf(instance, queue, placement.priority));
  simulation.run(Int32Array.from(placement.place));
  return differenceOfTimes(simulation, given);
}

export function differenceOfTimes(simulation: Simulation, given: PassPart): string {
  if (!close(simulation.makespan, given.makespan)) return "the makespan";
  if (given.start.some((time, v) => !close(simulation.start[v], time))) return "a start";
  if (given.finish.some((time, v) => !close(simulation.finish[v], time))) return "a finish";
  const chain = criticalChain(simulation);
  if (chain.length === 0) return given.makespan > 0 ? "the critical chain" : "";
  return close(chain[0].begin, 0) && close(chain[chain.length - 1].end, given.makespan)
    ? ""
    : "the critical chain";
}

export function close(own: number, given: number): boolean {
  return own === given || Math.abs(own - given) <= TOLERANCE * Math.max(1, Math.abs(given));
}
