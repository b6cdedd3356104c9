/** Shares at which the sources run at once, level by level; the port of `streamplace.model.source_levels`. */

import { type Instance, pressure } from "./instance";
import { type Bottleneck, Loads } from "./loads";
import { flowAt, inParts } from "./parts";
import { throughputOf } from "./steady";

/** Sources that run at one share of their rates, the full resources, and their users. */
export interface Level {
  readonly share: number;
  readonly sources: number[];
  /** Operators that limit these sources in every placement. */
  readonly stuck: number[];
  readonly limit: Pick<Bottleneck, "kind" | "device" | "peer">;
}

/** Which operators share a device, and which devices they may use. */
export interface Rules {
  readonly unit: ArrayLike<number>;
  allows(unit: number, device: number): boolean;
}

const ROUNDING = 1e-9;

/** The levels of several sources that are not carried whole. */
export function levelsOf(loads: Loads, rules: Rules): Level[] {
  const { instance } = loads;
  const { sources } = instance.flow;
  const held = new Float64Array(sources.length);
  const free = new Float64Array(sources.length).fill(1);
  const levels: Level[] = [];
  let share = throughputOf(loads);
  let limit: Level["limit"] = loads.bottleneck();
  while (share < 1 && sources.length > 1 && free.some((own) => own > 0)) {
    const stuck = stuckOf(instance, rules, free, held, share);
    const now = stuck.some(Boolean) ? heldWith(instance, free, stuck) : free.slice();
    levels.push({
      share,
      sources: Array.from(sources).filter((_, k) => now[k] > 0),
      stuck: Array.from(stuck.keys()).filter((v) => stuck[v]),
      limit,
    });
    now.forEach((own, k) => {
      if (own > 0) [held[k], free[k]] = [share, 0];
    });
    const slowdowns = slowdownsOf(loads, free, held);
    const row = slowdowns.reduce((best, slowdown, r) => (slowdown > slowdowns[best] ? r : best), 0);
    share = Math.max(share, 1 / Math.max(1, slowdowns[row]));
    limit = resourceAt(loads, row);
  }
  return levels;
}

/** Operators that are as slow on the best device that they may use. */
function stuckOf(
  instance: Instance,
  rules: Rules,
  free: Float64Array,
  held: Float64Array,
  share: number,
): boolean[] {
  const { n, d, load, coreLoad, constant, coreConstant, perCore } = instance;
  const [rising, staying] = [flowAt(instance, free), flowAt(instance, held)];
  const units = Math.max(...Array.from(rules.unit)) + 1;
  const wanted = new Float64Array(units * d);
  const taken = new Float64Array(units * d);
  for (let i = 0; i < n * d; i++) {
    const [v, cell] = [Math.floor(i / d), rules.unit[Math.floor(i / d)] * d + (i % d)];
    wanted[cell] += load[i] * rising[v];
    taken[cell] += load[i] * staying[v] + (constant[i] ?? 0);
  }
  const slowdown = wanted.map((own, cell) => pressure(own, taken[cell]));
  for (let i = 0; perCore && i < n * d; i++) {
    const [v, cell] = [Math.floor(i / d), rules.unit[Math.floor(i / d)] * d + (i % d)];
    const core = pressure(coreLoad[i] * rising[v], coreLoad[i] * staying[v] + (coreConstant[i] ?? 0));
    slowdown[cell] = Math.max(slowdown[cell], core);
  }
  const least = new Float64Array(units).fill(Infinity);
  slowdown.forEach((own, cell) => {
    const u = Math.floor(cell / d);
    if (rules.allows(u, cell % d)) least[u] = Math.min(least[u], own);
  });
  const isLimit = (u: number): boolean =>
    share > 0 ? least[u] >= (1 - ROUNDING) / share : least[u] === Infinity;
  return Array.from(rising, (own, v) => own > 0 && isLimit(rules.unit[v]));
}

/** Free sources that reach a stuck operator, or meet one of them in a join. */
function heldWith(instance: Instance, free: Float64Array, stuck: readonly boolean[]): Float64Array {
  const { flow } = instance;
  const joins = (v: number): boolean => flow.portStart[v + 1] - flow.portStart[v] > 1;
  const reaching = (marked: readonly boolean[]): Float64Array => {
    const leads = leadingTo(instance, marked);
    return Float64Array.from(free, (own, k) => (own > 0 && leads[flow.sources[k]] ? 1 : 0));
  };
  let held = reaching(stuck);
  for (let count = -1; count !== sum(held); ) {
    count = sum(held);
    const parts = flowAt(instance, held);
    const more = reaching(Array.from(parts, (part, v) => part > 0 && joins(v)));
    held = Float64Array.from(held, (own, k) => Math.max(own, more[k]));
  }
  return held;
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Whether tuples of each operator reach one of the marked ones. */
function leadingTo({ flow }: Instance, marked: readonly boolean[]): boolean[] {
  const leads = marked.slice();
  for (const v of flow.order.slice().reverse()) {
    for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
      if (flow.tuples[e] > 0 && leads[flow.target[e]]) leads[v] = true;
    }
  }
  return leads;
}

/** Factor by which each resource, then the core of each operator, slows down the free sources. */
function slowdownsOf({ instance, place }: Loads, free: Float64Array, held: Float64Array): number[] {
  const { n, d, coreLoad, constant, coreConstant, perCore } = instance;
  const parts = [flowAt(instance, free), flowAt(instance, held)];
  const [rising, staying] = parts.map((part) => new Loads(inParts(instance, part), place));
  const always = new Float64Array(d);
  place.forEach((a, v) => (always[a] += constant[v * d + a] ?? 0));
  const slowdown = (wanted: number, used: number, taken: number): number =>
    used > 0 && used + taken > 1 + ROUNDING ? Infinity : wanted > 0 ? pressure(wanted, used + taken) : 0;
  const shared = Array.from(rising.loads, (_, r) => slowdown(rising.at(r), staying.at(r), always[r] ?? 0));
  if (!perCore) return shared;
  const cores = Array.from({ length: n }, (_, v) => {
    const i = v * d + place[v];
    return slowdown(coreLoad[i] * parts[0][v], coreLoad[i] * parts[1][v], coreConstant[i] ?? 0);
  });
  return [...shared, ...cores];
}

/** Resource of a row of `slowdownsOf`. */
function resourceAt({ instance, place }: Loads, row: number): Level["limit"] {
  const { d } = instance;
  if (row < d) return { kind: "device", device: row, peer: -1 };
  const link = row - d;
  if (link < d * d) return { kind: "link", device: Math.floor(link / d), peer: link % d };
  const card = link - d * d;
  if (card < 2 * d) return { kind: card < d ? "egress" : "ingress", device: card % d, peer: -1 };
  return { kind: "core", device: place[card - 2 * d], peer: -1 };
}
