/** What each source of an overloaded job gets; the port of `streamsim.overload`. */

import { type Instance, handlingSeconds, pressure } from "./instance";
import { Loads } from "./loads";
import { flowAt, inParts } from "./parts";

const MAX_ROUNDS = 50;
const STEADY = 1e-6;
const MAX_STEPS = 64;
const TIE = 1e-12;

/** Share of its rate that each source gets if all sources offer theirs. */
export function overloadedShares(loads: Loads): Float64Array {
  const { instance, place, peak } = loads;
  const { sources } = instance.flow;
  if (peak <= 1 || sources.length < 2) return new Float64Array(sources.length).fill(1 / Math.max(1, peak));
  const shares = new Rounds(instance, place).shares();
  const worst = Math.max(1, new Loads(inParts(instance, flowAt(instance, shares)), place).peak);
  return shares.map((share) => share / worst);
}

class Rounds {
  private readonly need: Float64Array;
  private readonly room: Float64Array;
  private readonly most: Float64Array;
  private readonly wire: Float64Array[];
  private readonly on: Int32Array[];
  private readonly cpu: Float64Array;
  private readonly wires: Float64Array;
  private readonly accepted: Float64Array;
  private readonly own: Float64Array;
  private readonly offered: Float64Array;
  private readonly free: Float64Array;
  private readonly wanted: Float64Array;

  constructor(
    private readonly instance: Instance,
    private readonly place: Int32Array,
  ) {
    const { n, m, d, flow, constant, coreLoad, coreConstant } = instance;
    const ones = (size: number): Float64Array => new Float64Array(size).fill(1);
    const at = (v: number): number => v * d + place[v];
    this.need = Float64Array.from(place, (_, v) => instance.load[at(v)]);
    const taken = new Float64Array(d);
    place.forEach((a, v) => (taken[a] += constant[at(v)] ?? 0));
    this.room = taken.map((share) => Math.max(0, 1 - share));
    this.most = Float64Array.from(place, (_, v) =>
      instance.perCore ? 1 / Math.max(1, pressure(coreLoad[at(v)], coreConstant[at(v)] ?? 0)) : 1,
    );
    this.wire = [0, 1, 2].map(() => new Float64Array(m));
    this.on = [0, 1, 2].map(() => new Int32Array(m));
    for (let e = 0; e < m; e++) {
      const [u, v] = [flow.source[e], flow.target[e]];
      const [a, b] = [place[u], place[v]];
      this.on.forEach((on, kind) => (on[e] = [a * d + b, a, b][kind]));
      if (a === b) continue;
      const handling = handlingSeconds(instance, e, 1);
      this.need[u] += handling / instance.freeCores[a];
      this.need[v] += handling / instance.freeCores[b];
      this.wire[0][e] = instance.traffic[e] * instance.secondsPerByte[a * d + b] + flow.tuples[e] * instance.gap;
      this.wire[1][e] = instance.traffic[e] * instance.egress[a];
      this.wire[2][e] = instance.traffic[e] * instance.ingress[b];
    }
    [this.cpu, this.own, this.free, this.wanted] = [ones(n), ones(n), ones(n), ones(n)];
    [this.wires, this.accepted, this.offered] = [ones(m), ones(m), ones(m)];
  }

  shares(): Float64Array {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      this.forward();
      if (Math.max(this.fillDevices(), this.fillWires(), this.backward()) < STEADY) break;
    }
    this.forward();
    return Float64Array.from(this.instance.flow.sources, (v) => Math.min(this.own[v], this.free[v]));
  }

  private forward(): void {
    const { flow } = this.instance;
    for (const v of flow.order) {
      const supply = Math.min(this.supply(v), this.most[v]);
      let [least, second, first] = [1, 1, -1];
      for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
        const limit = Math.min(this.accepted[e], this.wires[e]);
        if (limit < least) [least, second, first] = [limit, least, e];
        else second = Math.min(second, limit);
      }
      this.wanted[v] = Math.min(supply, least);
      this.free[v] = Math.min(this.cpu[v], this.most[v], least);
      const through = Math.min(supply, this.cpu[v]);
      for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
        this.offered[e] = Math.min(through, e === first ? second : least);
      }
    }
  }

  private supply(v: number): number {
    const { flow } = this.instance;
    if (flow.inputRate[v] <= 0) return 1;
    const ports = flow.portStart[v + 1] - flow.portStart[v];
    let supply = 1;
    for (let port = flow.portStart[v]; port < flow.portStart[v + 1]; port++) {
      let arriving = flow.rate[v] / ports;
      for (const e of this.into(v, port)) {
        arriving += flow.intake[e] * Math.min(this.offered[e], this.wires[e]);
      }
      supply = Math.min(supply, (arriving * ports) / flow.inputRate[v]);
    }
    return supply;
  }

  /** Streams into a port of an operator. */
  private into(v: number, port: number): Int32Array {
    const { flow } = this.instance;
    return flow.inStreams.slice(flow.inStart[v], flow.inStart[v + 1]).filter((e) => flow.port[e] === port);
  }

  private fillDevices(): number {
    const { need, room, place, cpu } = this;
    const level = filled(place, this.wanted.map((share, v) => share * need[v]), room);
    let change = 0;
    for (let v = 0; v < place.length; v++) {
      const share = level[place[v]];
      const limit = need[v] > share ? share / need[v] : 1;
      change = Math.max(change, Math.abs(limit - cpu[v]));
      cpu[v] = (cpu[v] + limit) / 2;
    }
    return change;
  }

  private fillWires(): number {
    const { wire, on, wires } = this;
    const { d } = this.instance;
    const left = new Float64Array(wires.length).fill(1);
    for (const kind of [0, 1, 2]) {
      const need = wire[kind];
      const demand = need.map((share, e) => Math.min(this.offered[e], this.accepted[e]) * share);
      const level = filled(on[kind], demand, new Float64Array(kind === 0 ? d * d : d).fill(1));
      for (let e = 0; e < left.length; e++) {
        const share = level[on[kind][e]];
        if (need[e] > share) left[e] = Math.min(left[e], share / need[e]);
      }
    }
    let change = 0;
    for (let e = 0; e < left.length; e++) {
      change = Math.max(change, Math.abs(left[e] - wires[e]));
      wires[e] = (wires[e] + left[e]) / 2;
    }
    return change;
  }

  private backward(): number {
    const { flow } = this.instance;
    const { accepted, own } = this;
    let change = 0;
    for (const v of flow.order.slice().reverse()) {
      if (flow.inputRate[v] <= 0) continue;
      let most = Math.min(this.cpu[v], this.most[v]);
      for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
        most = Math.min(most, accepted[e], this.wires[e]);
      }
      const ports = flow.portStart[v + 1] - flow.portStart[v];
      for (let port = flow.portStart[v]; port < flow.portStart[v + 1]; port++) {
        const streams = this.into(v, port);
        const generated = flow.rate[v] / ports;
        const level = this.levelOf(streams, generated, (most * flow.inputRate[v]) / ports);
        for (const e of streams) {
          change = Math.max(change, Math.abs(level - accepted[e]));
          accepted[e] = (accepted[e] + level) / 2;
        }
        if (generated > 0) {
          change = Math.max(change, Math.abs(level - own[v]));
          own[v] = (own[v] + level) / 2;
        }
      }
    }
    return change;
  }

  /** Level up to which inputs are accepted, so that their sum is the intake. */
  private levelOf(streams: Int32Array, generated: number, taken: number): number {
    const { intake } = this.instance.flow;
    let size = generated;
    for (const e of streams) size += intake[e];
    if (size <= 0) return 1;
    let level = taken / size;
    let low = 0;
    for (let i = 0; i < MAX_STEPS; i++) {
      let total = generated * Math.min(1, level);
      let rest = level < 1 ? generated : 0;
      for (const e of streams) {
        const brought = Math.min(this.offered[e], this.wires[e]);
        total += intake[e] * Math.min(brought, level);
        rest += brought > level ? intake[e] : 0;
      }
      low = taken - total;
      if (low <= TIE * taken || rest <= 0) break;
      level += low / rest;
    }
    return low > TIE * taken ? 1 : Math.min(1, level);
  }
}

/** Level up to which each resource serves demands; infinite if it serves all. */
function filled(of: Int32Array, wanted: Float64Array, room: Float64Array): Float64Array {
  const left = room.slice();
  const count = new Float64Array(room.length);
  const waiting = wanted.map((share) => (share > 0 ? 1 : 0));
  of.forEach((r, i) => (count[r] += waiting[i]));
  const level = new Float64Array(room.length);
  for (let changed = true; changed; ) {
    changed = false;
    for (let r = 0; r < room.length; r++) level[r] = count[r] > 0 ? left[r] / count[r] : Infinity;
    for (let i = 0; i < of.length; i++) {
      if (!waiting[i] || wanted[i] > level[of[i]]) continue;
      waiting[i] = 0;
      left[of[i]] -= wanted[i];
      count[of[i]]--;
      changed = true;
    }
  }
  return level;
}
