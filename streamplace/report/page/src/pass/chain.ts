/** The critical chain: what a makespan is made of, one thing after the other. */

import type { Simulation } from "./simulate";

export type Part = "running" | "core" | "sending";

export interface Link {
  readonly part: Part;
  readonly operator: number;
  /** The stream that is sent, in the order of the flow; else -1. */
  readonly stream: number;
  readonly begin: number;
  readonly end: number;
}

/** Parts that follow one another from 0 to the makespan. */
export function criticalChain(simulation: Simulation): Link[] {
  const { pass, ready, start, finish, arrival, departure, place } = simulation;
  const { flow } = pass.instance;
  const chain: Link[] = [];
  const add = (part: Part, operator: number, stream: number, begin: number, end: number): void => {
    if (end > begin) chain.push({ part, operator, stream, begin, end });
  };
  let v = finish.reduce((last, time, u) => (time > finish[last] ? u : last), 0);
  while (v >= 0) {
    add("running", v, -1, start[v], finish[v]);
    const before = pass.queue === "order" && start[v] > ready[v] ? beforeInLine(v) : -1;
    if (before >= 0) {
      v = before;
      continue;
    }
    add("core", v, -1, ready[v], start[v]);
    const e = lastArrival(v);
    if (e < 0) break;
    v = flow.source[e];
    add("sending", v, e, departure[e], ready[flow.target[e]]);
  }
  return chain.reverse();

  /** First stream, in the order of the flow, whose arrival made an operator ready. */
  function lastArrival(v: number): number {
    let first = -1;
    for (let i = flow.inStart[v]; i < flow.inStart[v + 1]; i++) {
      const e = flow.inStreams[i];
      if (arrival[e] === ready[v] && (first < 0 || e < first)) first = e;
    }
    return first;
  }

  /** Operator with whose end the turn of another came, -1 where there is none. */
  function beforeInLine(v: number): number {
    for (let i = pass.line.indexOf(v) - 1; i >= 0; i--) {
      const u = pass.line[i];
      if (place[u] === place[v] && finish[u] === start[v]) return u;
    }
    return -1;
  }
}
