/** What one pass asks of devices and links; the port of `streamsim.passes.compiling`. */

import type { Instance } from "../model/instance";

export type Queue = "fifo" | "priority" | "order";

export interface Pass {
  readonly instance: Instance;
  readonly queue: Queue;
  /** The higher, the sooner; read by the queues `priority` and `order`. */
  readonly priority: Float64Array;
  /** Core seconds of every operator on every device, [N × D]. */
  readonly work: Float64Array;
  /** Bytes and tuples of every stream. */
  readonly size: Float64Array;
  readonly tuples: Float64Array;
  readonly inputs: Int32Array;
  readonly cores: Int32Array;
  /** Seconds per byte of the slowest of link and network cards, [D × D]. */
  readonly wire: Float64Array;
  /** Operators by falling priority, of equals in topological order. */
  readonly line: Int32Array;
}

export function passOf(instance: Instance, queue: Queue, priority?: ArrayLike<number>): Pass {
  const { n, d, flow } = instance;
  const span = 1 / flow.rate.reduce((most, r) => Math.max(most, r), 0);
  const rank = priority ? Float64Array.from(priority) : new Float64Array(n);
  const work = new Float64Array(n * d);
  for (let v = 0; v < n; v++) {
    const tuples = span * flow.inputRate[v];
    for (let a = 0; a < d; a++) work[v * d + a] = tuples * instance.seconds[v * d + a];
  }
  const wire = new Float64Array(d * d);
  for (let a = 0; a < d; a++) {
    for (let b = 0; b < d; b++) {
      const cards = a === b ? 0 : Math.max(instance.egress[a], instance.ingress[b]);
      wire[a * d + b] = Math.max(instance.secondsPerByte[a * d + b], cards);
    }
  }
  const line = Array.from(flow.order).sort((u, v) => rank[v] - rank[u]);
  return {
    instance,
    queue,
    priority: rank,
    work,
    size: instance.traffic.map((bytes) => span * bytes),
    tuples: flow.tuples.map((tuples) => span * tuples),
    inputs: Int32Array.from({ length: n }, (_, v) => flow.inStart[v + 1] - flow.inStart[v]),
    cores: Int32Array.from(instance.cores, (count) => Math.max(1, Math.trunc(count))),
    wire,
    line: Int32Array.from(line),
  };
}

/** Seconds that a stream takes from one device to another. */
export function transferSeconds(pass: Pass, e: number, a: number, b: number): number {
  const { latency, overhead, overheadPerByte, gap, d } = pass.instance;
  const held = pass.size[e] * pass.wire[a * d + b] + pass.tuples[e] * gap;
  const atEnds = pass.tuples[e] * (2 * overhead);
  const apart = latency[a * d + b] + atEnds + pass.size[e] * (2 * overheadPerByte);
  return apart + held;
}
