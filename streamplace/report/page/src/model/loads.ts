/** Loads of all resources under single moves; the port of `streamsim.incremental`.
 *
 * The resources of D devices are one array: D devices, D·D ordered links, D outgoing network cards,
 * D incoming ones. A load is `loads[r] + carry[r]`: what every addition rounds off is carried, so
 * that a load comes back to what it was when its operators do. Of devices and cores, leaves hold the
 * load as a fraction of what constant loads leave.
 */

import { type Instance, handlingSeconds, pressure } from "./instance";

export type Kind = "device" | "link" | "egress" | "ingress" | "core";

export interface Bottleneck {
  readonly kind: Kind;
  readonly device: number;
  /** The receiving device of a link, else -1. */
  readonly peer: number;
  /** Share in use at the full rate, constant loads included. */
  readonly load: number;
}

export class Loads {
  readonly place: Int32Array;
  readonly loads: Float64Array;
  private readonly carry: Float64Array;
  /** What is taken of the devices at any rate; [0] where nothing is. */
  private readonly constants: Float64Array;
  private readonly constantsCarry: Float64Array;
  /** Maxima by pairs: `tree[1]` is the largest; leaves are resources, then single cores. */
  private readonly tree: Float64Array;
  private readonly half: number;

  constructor(
    readonly instance: Instance,
    placement: ArrayLike<number>,
  ) {
    const { n, m, d, flow } = instance;
    this.place = Int32Array.from(placement);
    this.loads = new Float64Array(d * (d + 3));
    this.carry = new Float64Array(this.loads.length);
    this.constants = new Float64Array(instance.constant.length > 0 ? d : 0);
    this.constantsCarry = new Float64Array(this.constants.length);
    const leaves = this.loads.length + (instance.perCore ? n : 0);
    this.half = 1;
    while (this.half < leaves) this.half *= 2;
    this.tree = new Float64Array(2 * this.half);
    for (let v = 0; v < n; v++) {
      this.take(v, this.place[v], 1);
      this.shift(this.place[v], instance.load[v * d + this.place[v]]);
    }
    for (let e = 0; e < m; e++) {
      this.reroute(e, this.place[flow.source[e]], this.place[flow.target[e]], 1);
    }
    if (instance.perCore) for (let v = 0; v < n; v++) this.setCore(v);
  }

  /** Move an operator to a device, or from or to none (-1). */
  move(v: number, to: number): void {
    const { d, load, flow, perCore } = this.instance;
    const from = this.place[v];
    if (from === to) return;
    this.take(v, from, -1);
    this.take(v, to, 1);
    if (from >= 0) this.shift(from, -load[v * d + from]);
    if (to >= 0) this.shift(to, load[v * d + to]);
    for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
      const peer = this.place[flow.target[e]];
      this.reroute(e, from, peer, -1);
      this.reroute(e, to, peer, 1);
    }
    for (let i = flow.inStart[v]; i < flow.inStart[v + 1]; i++) {
      const e = flow.inStreams[i];
      const peer = this.place[flow.source[e]];
      this.reroute(e, peer, from, -1);
      this.reroute(e, peer, to, 1);
    }
    this.place[v] = to;
    if (perCore) this.setCore(v);
  }

  /** Load of the fullest resource, as a fraction of what constant loads leave. */
  get peak(): number {
    return this.tree[1];
  }

  at(r: number): number {
    return Math.max(0, this.loads[r] + this.carry[r]);
  }

  /** What is taken of a device at any rate. */
  constant(a: number): number {
    if (this.constants.length === 0) return 0;
    return Math.max(0, this.constants[a] + this.constantsCarry[a]);
  }

  /** Share of a device in use at full rate, constant loads included. */
  device(a: number): number {
    return this.at(a) + this.constant(a);
  }

  link(a: number, b: number): number {
    const { d } = this.instance;
    return this.at(d + a * d + b);
  }

  egress(a: number): number {
    const { d } = this.instance;
    return this.at(d + d * d + a);
  }

  ingress(a: number): number {
    const { d } = this.instance;
    return this.at(d + d * d + d + a);
  }

  /** What limits first; in a tie, devices come before links and those before cards. */
  bottleneck(): Bottleneck {
    const { d, n, perCore, coreLoad, coreConstant } = this.instance;
    let best: Bottleneck = { kind: "device", device: 0, peer: -1, load: this.device(0) };
    let most = pressure(this.at(0), this.constant(0));
    const offer = (kind: Kind, device: number, peer: number, own: number, taken = 0): void => {
      const share = pressure(own, taken);
      if (!(share > most)) return;
      most = share;
      best = { kind, device, peer, load: own + taken };
    };
    for (let a = 1; a < d; a++) offer("device", a, -1, this.at(a), this.constant(a));
    for (let r = 0; r < d * d; r++) offer("link", Math.floor(r / d), r % d, this.at(d + r));
    for (let a = 0; a < d; a++) offer("egress", a, -1, this.egress(a));
    for (let a = 0; a < d; a++) offer("ingress", a, -1, this.ingress(a));
    if (!perCore) return best;
    const core = new Int32Array(d).fill(-1);
    const share = (i: number): number => pressure(coreLoad[i], coreConstant[i] ?? 0);
    const use = (i: number): number => coreLoad[i] + (coreConstant[i] ?? 0);
    for (let v = 0; v < n; v++) {
      const a = this.place[v];
      const i = v * d + a;
      const before = core[a];
      const more = before < 0 || share(i) > share(before);
      if (more || (share(i) === share(before) && use(i) > use(before))) core[a] = i;
    }
    core.forEach((i, a) => {
      if (i >= 0) offer("core", a, -1, coreLoad[i], coreConstant[i] ?? 0);
    });
    return best;
  }

  private reroute(e: number, a: number, b: number, sign: number): void {
    if (a === b || a < 0 || b < 0) return;
    const { d, flow, traffic, secondsPerByte, egress, ingress, freeCores, gap } = this.instance;
    const bytes = traffic[e];
    const tuples = flow.tuples[e];
    this.shift(d + a * d + b, sign * (bytes * secondsPerByte[a * d + b] + tuples * gap));
    this.shift(d + d * d + a, sign * (bytes * egress[a]));
    this.shift(d + d * d + d + b, sign * (bytes * ingress[b]));
    const handling = handlingSeconds(this.instance, e, sign);
    if (handling !== 0) {
      this.shift(a, handling / freeCores[a]);
      this.shift(b, handling / freeCores[b]);
    }
  }

  /** Change a load, carrying what the addition rounds off (Knuth's two-sum). */
  private shift(r: number, change: number): void {
    if (change === 0) return;
    const before = this.loads[r];
    const after = before + change;
    const added = after - before;
    this.loads[r] = after;
    this.carry[r] += before - (after - added) + (change - added);
    this.setLeaf(r, this.leaf(r));
  }

  private leaf(r: number): number {
    const load = this.loads[r] + this.carry[r];
    if (r >= this.constants.length) return load;
    return pressure(load, this.constants[r] + this.constantsCarry[r]);
  }

  /** Take or give back what an operator uses of a device at any rate. */
  private take(v: number, a: number, sign: number): void {
    if (this.constants.length === 0 || a < 0) return;
    const change = sign * this.instance.constant[v * this.instance.d + a];
    if (change === 0) return;
    const before = this.constants[a];
    const after = before + change;
    const added = after - before;
    this.constants[a] = after;
    this.constantsCarry[a] += before - (after - added) + (change - added);
    this.setLeaf(a, this.leaf(a));
  }

  private setCore(v: number): void {
    const { d, coreLoad, coreConstant } = this.instance;
    const i = v * d + this.place[v];
    this.setLeaf(this.loads.length + v, this.place[v] < 0 ? 0 : pressure(coreLoad[i], coreConstant[i] ?? 0));
  }

  private setLeaf(leaf: number, load: number): void {
    const { tree } = this;
    let i = leaf + this.half;
    tree[i] = load;
    while (i > 1) {
      i >>= 1;
      const top = Math.max(tree[2 * i], tree[2 * i + 1]);
      if (tree[i] === top) return;
      tree[i] = top;
    }
  }
}
