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
    const line = pass.queue === "order" && start[v] > ready[v] ? beforeInLine(v) : [];
    const before = line.find((u) => finish[u] === start[v]);
    if (before !== undefined) {
      v = before;
      continue;
    }
    // a core may have been idle until the inputs of an operator before it in line came
    const awaited = line.find((u) => ready[u] === start[v]);
    if (awaited === undefined) add("core", v, -1, ready[v], start[v]);
    const e = lastArrival(awaited ?? v);
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

  /** Operators before another in the line of its device, the nearest first. */
  function beforeInLine(v: number): number[] {
    const before = Array.from(pass.line).slice(0, pass.line.indexOf(v));
    return before.filter((u) => place[u] === place[v]).reverse();
  }
}
