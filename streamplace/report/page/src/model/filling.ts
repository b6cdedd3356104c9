/** Max–min fair rates of several groups of sources; the port of `streamsim.filling`. */

import { type Instance, handlingSeconds, isOverfull } from "./instance";
import type { Loads } from "./loads";

/** Resources that fill up within this fraction of one another are full at once. */
const TIE = 1e-12;

export class Filling {
  /** Fraction of its nominal rate that each source reaches. */
  readonly rates: Float64Array;
  private readonly stopped: Uint8Array;
  private readonly ending: Uint8Array;
  private readonly moving: Float64Array;
  private readonly frozen: Float64Array;
  private readonly rising: Float64Array;
  private readonly used: Float64Array;
  private readonly full: Uint8Array;
  private readonly touched: Uint8Array;
  /** What is taken of the devices at any rate. */
  private readonly constants: Float64Array;

  constructor(private readonly instance: Instance) {
    const { n, d, flow } = instance;
    const r = d * (d + 3);
    this.rates = new Float64Array(flow.sources.length);
    this.stopped = new Uint8Array(flow.sources.length);
    this.ending = new Uint8Array(flow.nGroups);
    this.moving = new Float64Array(n);
    this.frozen = new Float64Array(n);
    this.rising = new Float64Array(r);
    this.used = new Float64Array(r);
    this.full = new Uint8Array(r);
    this.touched = new Uint8Array(n);
    this.constants = new Float64Array(instance.constant.length > 0 ? d : 0);
  }

  /** Relative throughput of a placement that overloads something. */
  fill(loads: Loads): number {
    const { flow } = this.instance;
    for (let r = 0; r < this.rising.length; r++) this.rising[r] = loads.at(r);
    this.stopped.fill(0);
    this.rates.fill(0);
    this.frozen.fill(0);
    for (let a = 0; a < this.constants.length; a++) this.constants[a] = loads.constant(a);
    this.useConstants();
    for (let v = 0; v < this.moving.length; v++) this.moving[v] = flow.inputRate[v] > 0 ? 1 : 0;
    let left = this.rates.length;
    while (left > 0) {
      const level = this.level(loads.place);
      if (level < 1) this.touch(loads.place, level);
      const stops = this.freeze(level);
      left -= stops;
      if (stops === 0) break;
      if (left > 0) this.flow(loads.place);
    }
    return this.meanRate();
  }

  /** Use nothing but what is taken at any rate. */
  private useConstants(): void {
    this.used.fill(0);
    this.used.set(this.constants);
  }

  /** Level, at most 1, at which the rising sources meet the next full resource; marks those. */
  private level(place: Int32Array): number {
    const { rising, used, moving, frozen } = this;
    const { d, coreLoad, perCore } = this.instance;
    let level = 1;
    for (let r = 0; r < rising.length; r++) {
      if (rising[r] > 0 && 1 - used[r] < level * rising[r]) {
        level = Math.max(0, 1 - used[r]) / rising[r];
      }
    }
    if (perCore) {
      for (let v = 0; v < place.length; v++) {
        const core = coreLoad[v * d + place[v]];
        const up = core * moving[v];
        const room = 1 - core * frozen[v] - this.coreConstant(v, place[v]);
        if (up > 0 && room < level * up) level = Math.max(0, room) / up;
      }
    }
    for (let v = 0; this.constants.length > 0 && v < place.length; v++) {
      if (this.isStuck(v, place[v])) level = 0;
    }
    const near = level * (1 + TIE);
    for (let r = 0; r < rising.length; r++) {
      const room = Math.max(0, 1 - used[r]);
      this.full[r] = rising[r] > 0 && room <= near * rising[r] ? 1 : 0;
    }
    return level;
  }

  /** Mark the operators whose flow reaches a full resource, from the sinks back. */
  private touch(place: Int32Array, level: number): void {
    const { flow, d, load, perCore } = this.instance;
    for (let i = place.length - 1; i >= 0; i--) {
      const v = flow.order[i];
      const a = place[v];
      this.touched[v] =
        this.moving[v] > 0 &&
        ((this.full[a] && load[v * d + a] > 0) ||
          this.isStuck(v, a) ||
          (perCore && this.fillsCore(v, a, level)) ||
          this.feedsFull(place, v))
          ? 1
          : 0;
    }
  }

  private coreConstant(v: number, a: number): number {
    return this.instance.coreConstant[v * this.instance.d + a] ?? 0;
  }

  /** Whether the device or core of a rising operator has less than is taken at any rate. */
  private isStuck(v: number, a: number): boolean {
    if (this.constants.length === 0 || !(this.moving[v] > 0)) return false;
    if (isOverfull(this.constants[a])) return true;
    return this.instance.perCore && isOverfull(this.coreConstant(v, a));
  }

  private fillsCore(v: number, a: number, level: number): boolean {
    const core = this.instance.coreLoad[v * this.instance.d + a];
    const room = Math.max(0, 1 - core * this.frozen[v] - this.coreConstant(v, a));
    const moving = core * this.moving[v];
    return moving > 0 && room <= level * (1 + TIE) * moving;
  }

  private feedsFull(place: Int32Array, v: number): boolean {
    const { flow } = this.instance;
    for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
      if (!(flow.tuples[e] > 0)) continue;
      const target = flow.target[e];
      if (this.touched[target] || this.meetsFull(e, place[v], place[target])) return true;
    }
    return false;
  }

  /** Whether a stream loads a full link, card or (through its overhead) device. */
  private meetsFull(e: number, a: number, b: number): boolean {
    if (a === b) return false;
    const { d, traffic, flow, secondsPerByte, gap, egress, ingress } = this.instance;
    const { overhead, overheadPerByte } = this.instance;
    const { full } = this;
    const link = traffic[e] * secondsPerByte[a * d + b] + flow.tuples[e] * gap;
    return (
      (full[d + a * d + b] > 0 && link > 0) ||
      (full[d + d * d + a] > 0 && traffic[e] * egress[a] > 0) ||
      (full[d + d * d + d + b] > 0 && traffic[e] * ingress[b] > 0) ||
      ((flow.tuples[e] * overhead > 0 || traffic[e] * overheadPerByte > 0) &&
        (full[a] > 0 || full[b] > 0))
    );
  }

  /** Stop the groups of sources that cannot rise any more; how many sources that are. */
  private freeze(level: number): number {
    const { sources, group } = this.instance.flow;
    this.ending.fill(level >= 1 ? 1 : 0);
    for (let k = 0; k < sources.length; k++) {
      if (level < 1 && this.touched[sources[k]]) this.ending[group[k]] = 1;
    }
    let stops = 0;
    for (let k = 0; k < sources.length; k++) {
      if (this.stopped[k] || !this.ending[group[k]]) continue;
      this.stopped[k] = 1;
      this.rates[k] = level;
      stops++;
    }
    return stops;
  }

  /** Split every flow and every load into what rises and what has stopped. */
  private flow(place: Int32Array): void {
    const { moving, frozen, rising, used, instance } = this;
    const { flow } = instance;
    rising.fill(0);
    this.useConstants();
    moving.fill(0);
    frozen.fill(0);
    flow.sources.forEach((v, k) => {
      if (this.stopped[k]) frozen[v] = flow.rate[v] * this.rates[k];
      else moving[v] = flow.rate[v];
    });
    for (const v of flow.order) {
      if (flow.inputRate[v] <= 0) continue;
      moving[v] /= flow.inputRate[v];
      frozen[v] /= flow.inputRate[v];
      const a = place[v];
      const load = instance.load[v * instance.d + a];
      rising[a] += moving[v] * load;
      used[a] += frozen[v] * load;
      for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
        const target = flow.target[e];
        this.addStream(rising, e, a, place[target], moving[v]);
        this.addStream(used, e, a, place[target], frozen[v]);
        moving[target] += flow.intake[e] * moving[v];
        frozen[target] += flow.intake[e] * frozen[v];
      }
    }
  }

  private addStream(loads: Float64Array, e: number, a: number, b: number, share: number): void {
    if (a === b) return;
    const { d, traffic, flow, secondsPerByte, gap, egress, ingress, freeCores } = this.instance;
    const handling = handlingSeconds(this.instance, e, share);
    loads[a] += handling / freeCores[a];
    loads[b] += handling / freeCores[b];
    loads[d + a * d + b] +=
      share * (traffic[e] * secondsPerByte[a * d + b] + flow.tuples[e] * gap);
    loads[d + d * d + a] += share * (traffic[e] * egress[a]);
    loads[d + d * d + d + b] += share * (traffic[e] * ingress[b]);
  }

  private meanRate(): number {
    const { sources, rate } = this.instance.flow;
    let flowing = 0;
    let nominal = 0;
    sources.forEach((v, k) => {
      flowing += this.rates[k] * rate[v];
      nominal += rate[v];
    });
    return flowing / nominal;
  }
}
