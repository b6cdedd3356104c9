/** Parts of the full input of operators that sources cause; the port of `streamsim.sources`. */

import type { Instance } from "./instance";

/** Fraction of its full input that every operator has with sources at shares. */
export function flowAt({ n, flow }: Instance, shares: ArrayLike<number>): Float64Array {
  const part = new Float64Array(n);
  flow.sources.forEach((v, k) => (part[v] = shares[k] * flow.rate[v]));
  for (const v of flow.order) {
    if (flow.inputRate[v] > 0) part[v] /= flow.inputRate[v];
    for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) part[flow.target[e]] += flow.intake[e] * part[v];
  }
  return part;
}

/** The instance with every operator at a part of its full input; constant loads stay. */
export function inParts(instance: Instance, part: ArrayLike<number>): Instance {
  const { d, flow, load, coreLoad, traffic } = instance;
  return {
    ...instance,
    load: load.map((share, i) => share * part[Math.floor(i / d)]),
    coreLoad: coreLoad.map((share, i) => share * part[Math.floor(i / d)]),
    traffic: traffic.map((size, e) => size * part[flow.source[e]]),
    flow: { ...flow, tuples: flow.tuples.map((rate, e) => rate * part[flow.source[e]]) },
  };
}
