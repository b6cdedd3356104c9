/** What a placement comes to: Python's values of the document, or the page's own. */

import type { ChainPiece, LevelPart, LimitPart, PlacementPart } from "./document";
import { type Rules, levelsOf } from "./model/levels";
import type { Loads } from "./model/loads";
import { overloadedShares } from "./model/overload";
import { throughputOf } from "./model/steady";
import { criticalChain } from "./pass/chain";
import type { Simulation } from "./pass/simulate";

export interface Situation {
  readonly place: ArrayLike<number>;
  readonly throughput: number;
  readonly bottleneck: LimitPart;
  /** Load of the bottleneck relative to what constant loads leave of it. */
  readonly pressure: number;
  device(a: number): number;
  egress(a: number): number;
  ingress(a: number): number;
  link(a: number, b: number): number;
  /** Share of its rate that a source gets if all sources offer theirs. */
  reached(v: number): number | undefined;
  /** Shares at which several sources run at once that are not carried whole. */
  levels(): readonly LevelPart[];
}

export interface Times {
  readonly makespan: number;
  readonly start: ArrayLike<number>;
  readonly finish: ArrayLike<number>;
  readonly chain: readonly ChainPiece[];
}

export function situationOfDocument(placement: PlacementPart): Situation {
  const { loads } = placement;
  const links = new Map(loads.links.map(([a, b, load]) => [`${a}/${b}`, load]));
  const reached = new Map(placement.sources);
  return {
    place: placement.place,
    throughput: placement.throughput,
    bottleneck: placement.bottleneck,
    pressure: placement.pressure ?? placement.bottleneck.load,
    device: (a) => loads.devices[a] ?? 0,
    egress: (a) => loads.egress[a] ?? 0,
    ingress: (a) => loads.ingress[a] ?? 0,
    link: (a, b) => links.get(`${a}/${b}`) ?? 0,
    reached: (v) => reached.get(v),
    levels: () => placement.levels ?? [],
  };
}

export function situationOfLoads(loads: Loads, rules: Rules): Situation {
  let shares: Float64Array | undefined;
  const { sources } = loads.instance.flow;
  return {
    place: loads.place,
    throughput: throughputOf(loads),
    bottleneck: loads.bottleneck(),
    pressure: loads.peak,
    device: (a) => loads.device(a),
    egress: (a) => loads.egress(a),
    ingress: (a) => loads.ingress(a),
    link: (a, b) => loads.link(a, b),
    reached: (v) => {
      const k = sources.indexOf(v);
      if (k < 0) return undefined;
      shares ??= overloadedShares(loads);
      return shares[k];
    },
    levels: () => levelsOf(loads, rules),
  };
}

export function timesOfDocument(placement: PlacementPart): Times | undefined {
  return placement.one_pass;
}

const WORDS = { running: "running", core: "waiting for a core", sending: "sending" } as const;

export function timesOfSimulation(simulation: Simulation): Times {
  const { streamIndex } = simulation.pass.instance.flow;
  return {
    makespan: simulation.makespan,
    start: simulation.start,
    finish: simulation.finish,
    chain: Number.isFinite(simulation.makespan)
      ? criticalChain(simulation).map(({ part, operator, stream, begin, end }) => ({
          what: WORDS[part],
          operator,
          stream: stream < 0 ? -1 : streamIndex[stream],
          begin,
          end,
        }))
      : [],
  };
}
