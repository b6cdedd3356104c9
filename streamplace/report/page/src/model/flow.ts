/** Order, adjacency and rates of a stream graph; the port of `streamsim.flow`. */

export interface GraphData {
  /** Tuples/s that every operator generates. */
  readonly rate: ArrayLike<number>;
  readonly source: ArrayLike<number>;
  readonly target: ArrayLike<number>;
  readonly selectivity: ArrayLike<number>;
  /** Rows of operator, size, advance, base, factor, limit. */
  readonly windows?: readonly (readonly number[])[];
  /** Whether an operator fires once per set of one tuple from every input. */
  readonly joins?: ArrayLike<number | boolean>;
  /** Streams into one joining operator with the same number are one input. */
  readonly inputs?: ArrayLike<number>;
}

export interface Flow {
  readonly n: number;
  readonly m: number;
  readonly order: Int32Array;
  readonly rate: Float64Array;
  readonly source: Int32Array;
  readonly target: Int32Array;
  /** Position of every stream in the caller's order. */
  readonly streamIndex: Int32Array;
  readonly outStart: Int32Array;
  readonly outEnd: Int32Array;
  readonly inStart: Int32Array;
  readonly inStreams: Int32Array;
  readonly inputRate: Float64Array;
  readonly tuples: Float64Array;
  readonly intake: Float64Array;
  readonly sources: Int32Array;
  /** Port of every stream, and the first port of every operator. */
  readonly port: Int32Array;
  readonly portStart: Int32Array;
  /** Whether all inputs of every operator that joins have one rate. */
  readonly agrees: boolean;
}

/** Inputs of a joining operator may differ by this share of the larger rate. */
const UNEQUAL = 1e-6;

interface Topology {
  readonly order: Int32Array;
  readonly streamIndex: Int32Array;
  readonly source: Int32Array;
  readonly target: Int32Array;
  readonly outStart: Int32Array;
  readonly outEnd: Int32Array;
}

export function flowOf(graph: GraphData): Flow {
  const n = graph.rate.length;
  const m = graph.source.length;
  const rate = Float64Array.from(graph.rate);
  const topology = layOut(n, graph.source, graph.target);
  const { source, target, streamIndex } = topology;
  const selectivity = Float64Array.from(streamIndex, (e) => graph.selectivity[e]);
  const joins = Uint8Array.from({ length: n }, (_, v) => (graph.joins?.[v] ? 1 : 0));
  const ports = portsOf(joins, target, streamIndex, graph.inputs);
  const flowing = propagate(rate, source, target, selectivity, graph.windows ?? [], ports);
  return {
    n,
    m,
    rate,
    ...topology,
    inStart: ports.inStart,
    inStreams: ports.inStreams,
    ...flowing,
    sources: Int32Array.from(Array.from(rate.keys()).filter((v) => rate[v] !== 0)),
    port: ports.port,
    portStart: ports.start,
  };
}

/** Positions of each key: those of k are `positions[start[k]]` to `positions[start[k + 1] - 1]`. */
export function groupBy(keys: ArrayLike<number>, n: number): [Int32Array, Int32Array] {
  const start = new Int32Array(n + 1);
  for (let i = 0; i < keys.length; i++) start[keys[i] + 1]++;
  for (let k = 0; k < n; k++) start[k + 1] += start[k];
  const fill = start.slice(0, n);
  const positions = new Int32Array(keys.length);
  for (let i = 0; i < keys.length; i++) positions[fill[keys[i]]++] = i;
  return [start, positions];
}

function topologicalOrder(
  n: number,
  source: ArrayLike<number>,
  target: ArrayLike<number>,
): Int32Array {
  const [start, streams] = groupBy(source, n);
  const waiting = new Int32Array(n);
  for (let e = 0; e < target.length; e++) waiting[target[e]]++;
  const order = new Int32Array(n);
  let end = 0;
  for (let v = 0; v < n; v++) if (waiting[v] === 0) order[end++] = v;
  for (let done = 0; done < end; done++) {
    const u = order[done];
    for (let i = start[u]; i < start[u + 1]; i++) {
      const v = target[streams[i]];
      if (--waiting[v] === 0) order[end++] = v;
    }
  }
  if (end < n) throw new Error("the streams form a cycle");
  return order;
}

function layOut(n: number, from: ArrayLike<number>, to: ArrayLike<number>): Topology {
  const order = topologicalOrder(n, from, to);
  const m = from.length;
  const outStart = new Int32Array(n);
  const outEnd = new Int32Array(n);
  for (let e = 0; e < m; e++) outEnd[from[e]]++;
  let first = 0;
  for (const v of order) {
    outStart[v] = first;
    first += outEnd[v];
    outEnd[v] = outStart[v];
  }
  const streamIndex = new Int32Array(m);
  const source = new Int32Array(m);
  const target = new Int32Array(m);
  for (let e = 0; e < m; e++) {
    const at = outEnd[from[e]]++;
    streamIndex[at] = e;
    source[at] = from[e];
    target[at] = to[e];
  }
  return { order, streamIndex, source, target, outStart, outEnd };
}

interface Ports {
  readonly several: Uint8Array;
  readonly start: Int32Array;
  readonly port: Int32Array;
  readonly inStart: Int32Array;
  readonly inStreams: Int32Array;
}

function portsOf(
  joins: Uint8Array,
  target: Int32Array,
  streamIndex: Int32Array,
  inputs: ArrayLike<number> | undefined,
): Ports {
  const n = joins.length;
  const m = target.length;
  const label = Float64Array.from(streamIndex, (e) => (inputs ? inputs[e] : e));
  const key = (e: number): number => (joins[target[e]] ? label[e] : 0);
  const kin = Array.from({ length: m }, (_, e) => e).sort((a, b) => key(a) - key(b) || a - b);
  const [inStart, inRow] = groupBy(kin.map((e) => target[e]), n);
  const several = new Uint8Array(n);
  const start = new Int32Array(n + 1);
  const port = new Int32Array(m);
  for (let v = 0; v < n; v++) {
    let at = start[v];
    for (let i = inStart[v]; i < inStart[v + 1]; i++) {
      const e = kin[inRow[i]];
      if (joins[v] && i > inStart[v] && label[e] !== label[kin[inRow[i - 1]]]) at++;
      port[e] = at;
    }
    several[v] = at > start[v] ? 1 : 0;
    start[v + 1] = at + 1;
  }
  return { several, start, port, inStart, inStreams: inRow.map((i) => kin[i]) };
}

function propagate(
  rate: Float64Array,
  source: Int32Array,
  target: Int32Array,
  selectivity: Float64Array,
  windows: readonly (readonly number[])[],
  ports: Ports,
): { inputRate: Float64Array; tuples: Float64Array; intake: Float64Array; agrees: boolean } {
  const n = rate.length;
  const m = source.length;
  const row = new Int32Array(n).fill(-1);
  windows.forEach((window, k) => (row[window[0]] = k));
  const arriving = new Float64Array(ports.start[n]);
  for (let v = 0; v < n; v++) arriving.fill(rate[v], ports.start[v], ports.start[v + 1]);
  const inputRate = rate.slice();
  const tuples = new Float64Array(m);
  for (let e = 0; e < m; e++) {
    const u = source[e];
    const v = target[e];
    const output = row[u] < 0 ? inputRate[u] : windowOutput(windows[row[u]], inputRate[u]);
    tuples[e] = selectivity[e] * output;
    arriving[ports.port[e]] += tuples[e];
    inputRate[v] = Math.max(inputRate[v], arriving[ports.port[e]]);
  }
  const intake = new Float64Array(m);
  for (let e = 0; e < m; e++) {
    const v = target[e];
    intake[e] = tuples[e] / (ports.start[v + 1] - ports.start[v]);
  }
  const agrees = ports.port.every((port, e) => {
    const v = target[e];
    return !ports.several[v] || inputRate[v] - arriving[port] <= UNEQUAL * inputRate[v];
  });
  return { inputRate, tuples, intake, agrees };
}

function windowOutput(window: readonly number[], rate: number): number {
  const [, size, advance, base, factor, limit] = window;
  const count = rate * size;
  return (count > 0 ? Math.min(limit, base + factor * count) : 0) / advance;
}
