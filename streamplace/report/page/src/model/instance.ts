/** The arrays of one placement problem; the port of `streamsim.instance`. */

import { type Flow, type GraphData, flowOf } from "./flow";
import { type MessageData, messageMips } from "./messages";

export interface ProblemData extends GraphData {
  /** Core seconds per input tuple, operator × device type. */
  readonly seconds: readonly ArrayLike<number>[];
  /** Cores that operators use at any rate, operator × device type, and who shares them. */
  readonly constant?: readonly ArrayLike<number>[];
  readonly subtasks?: ArrayLike<number>;
  /** What messages cost, and the MIPS of a core of every device type; absent if they cost nothing. */
  readonly messages?: MessageData;
  readonly mips?: ArrayLike<number>;
  /** Bytes per tuple of every stream. */
  readonly payload: ArrayLike<number>;
  /** Subtasks of equal load that may run at once. */
  readonly parallelism: ArrayLike<number>;
  /** Cores that one subtask uses at most; absent if all use one. */
  readonly subtaskCores?: ArrayLike<number>;
  /** Tuples/s that one subtask takes in at most, 0 without a limit; absent if none has one. */
  readonly maxRate?: ArrayLike<number>;
  /** Column of `seconds` of every device. */
  readonly deviceType: ArrayLike<number>;
  readonly cores: ArrayLike<number>;
  /** Cores less what other processes take of them, [D]; all of them by default. */
  readonly freeCores?: ArrayLike<number>;
  /** Seconds per byte and seconds from device to device. */
  readonly secondsPerByte: readonly ArrayLike<number>[];
  readonly latency: readonly ArrayLike<number>[];
  /** Seconds per byte of network cards, 0 where they are unlimited. */
  readonly egress: ArrayLike<number>;
  readonly ingress: ArrayLike<number>;
  /** Core seconds per remote tuple and byte at each end, and link seconds per remote tuple. */
  readonly overhead: number;
  readonly overheadPerByte: number;
  readonly gap: number;
}

/** What a person changes in the page. */
export interface Changes {
  /** Factor of the rates of all sources. */
  readonly rate: number;
  /** Factor of the speed of every device; absent where nothing has changed. */
  readonly speed?: ArrayLike<number>;
}

export interface Instance {
  readonly flow: Flow;
  readonly n: number;
  readonly m: number;
  readonly d: number;
  /** Core seconds per input tuple on every device, [N × D]. */
  readonly seconds: Float64Array;
  /** Load of a device and of one of its cores (or of the largest rate) at full rate, [N × D]. */
  readonly load: Float64Array;
  readonly coreLoad: Float64Array;
  /** MIPS for messages that `seconds` do not contain, [N]; or [0]. */
  readonly messages: Float64Array;
  /** What is taken of a device and of one of its cores besides tuples, [N × D]; or [0]. */
  readonly constant: Float64Array;
  readonly coreConstant: Float64Array;
  readonly payload: Float64Array;
  readonly traffic: Float64Array;
  readonly cores: Float64Array;
  /** Cores less what other processes take of them, [D]. */
  readonly freeCores: Float64Array;
  readonly secondsPerByte: Float64Array;
  readonly latency: Float64Array;
  readonly egress: Float64Array;
  readonly ingress: Float64Array;
  readonly overhead: number;
  readonly overheadPerByte: number;
  readonly gap: number;
  /** Share of its largest rate that the busiest subtask takes in at full rate, [N]; 0 without. */
  readonly rateShare: Float64Array;
  /** Whether a subtask may be full, of its core or its largest rate, before its device is. */
  readonly perCore: boolean;
}

export function instanceOf(problem: ProblemData, changes: Changes = { rate: 1 }): Instance {
  const rate = Float64Array.from(problem.rate, (r) => r * changes.rate);
  const flow = flowOf({ ...problem, rate });
  const { n, m } = flow;
  const d = problem.deviceType.length;
  const cores = Float64Array.from(problem.cores);
  const seconds = new Float64Array(n * d);
  const load = new Float64Array(n * d);
  const coreLoad = new Float64Array(n * d);
  const messages = problem.messages ? messageMips(problem.messages, flow) : new Float64Array(0);
  const taken =
    messages.some((used) => used > 0) ||
    problem.constant?.some((row) => Array.from(row).some((share) => share > 0));
  const constant = new Float64Array(taken ? n * d : 0);
  const coreConstant = new Float64Array(constant.length);
  const rateShare = Float64Array.from(flow.inputRate, (rate, v) => {
    const most = problem.maxRate?.[v] ?? 0;
    return most > 0 ? rate / (problem.parallelism[v] * most) : 0;
  });
  for (let v = 0; v < n; v++) {
    const most = problem.subtaskCores?.[v] ?? 1;
    for (let a = 0; a < d; a++) {
      const i = v * d + a;
      seconds[i] = problem.seconds[v][problem.deviceType[a]] / (changes.speed?.[a] ?? 1);
      const busy = flow.inputRate[v] * seconds[i];
      load[i] = busy / cores[a];
      coreLoad[i] = busy / (problem.parallelism[v] * most);
      if (taken) {
        const type = problem.deviceType[a];
        const sending = (messages[v] ?? 0) / (problem.mips?.[type] ?? 1);
        const used = ((problem.constant?.[v][type] ?? 0) + sending) / (changes.speed?.[a] ?? 1);
        constant[i] = used / cores[a];
        coreConstant[i] = used / ((problem.subtasks ?? problem.parallelism)[v] * most);
        const waits = rateShare[v] > 0 && coreLoad[i] <= NO_ROOM && !isOverfull(coreConstant[i]);
        if (waits) coreConstant[i] = Math.min(coreConstant[i], 1 - LITTLE_ROOM);
      }
      const left = Math.max(0, 1 - (coreConstant[i] ?? 0));
      coreLoad[i] = Math.max(coreLoad[i], rateShare[v] * left);
    }
  }
  const payload = Float64Array.from(flow.streamIndex, (e) => problem.payload[e]);
  return {
    flow,
    n,
    m,
    d,
    seconds,
    load,
    coreLoad,
    messages,
    constant,
    coreConstant,
    payload,
    traffic: payload.map((size, e) => flow.tuples[e] * size),
    cores,
    freeCores: Float64Array.from(problem.freeCores ?? cores),
    secondsPerByte: hollow(problem.secondsPerByte, d),
    latency: hollow(problem.latency, d),
    egress: Float64Array.from(problem.egress),
    ingress: Float64Array.from(problem.ingress),
    overhead: problem.overhead,
    overheadPerByte: problem.overheadPerByte,
    gap: problem.gap,
    rateShare,
    perCore: cores.some((count) => count > 1) || rateShare.some((share) => share > 0),
  };
}

/** Constant loads that leave less than this of a device leave nothing. */
const NO_ROOM = 1e-12;
/** Free share of a core that a constant load fills, for subtasks that only wait. */
const LITTLE_ROOM = 1e-5;
/** Constant loads above 1 by more than this are more than a device has. */
const OVERFULL = 1e-9;

/** Load as a fraction of what constant loads leave of a device or core. */
export function pressure(load: number, constant: number): number {
  if (constant <= 0) return load;
  const room = 1 - constant;
  if (room >= NO_ROOM) return load / room;
  return load > NO_ROOM || isOverfull(constant) ? Infinity : 0;
}

/** Whether constant loads are more than a device or core has, whatever else it does. */
export function isOverfull(constant: number): boolean {
  return 1 - constant < -OVERFULL;
}

/** Core seconds per second at each end of a remote stream. */
export function handlingSeconds(instance: Instance, e: number, share: number): number {
  const { flow, traffic, overhead, overheadPerByte } = instance;
  return share * flow.tuples[e] * overhead + share * traffic[e] * overheadPerByte;
}

/** A matrix in one array, with zeros on the diagonal. */
function hollow(matrix: readonly ArrayLike<number>[], d: number): Float64Array {
  const flat = new Float64Array(d * d);
  for (let a = 0; a < d; a++) {
    for (let b = 0; b < d; b++) flat[a * d + b] = a === b ? 0 : matrix[a][b];
  }
  return flat;
}
