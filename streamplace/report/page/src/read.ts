/** From the document to the arguments of the models. */

import { type MessagesPart, type NetworkPart, type ProblemPart, at, columnOf } from "./document";
import type { ProblemData } from "./model/instance";
import type { Rules } from "./model/levels";
import type { MessageData } from "./model/messages";

/** Arguments of the models, absent for a graph alone. */
export function problemData(problem: ProblemPart): ProblemData | undefined {
  const { operators, streams, messages, devices, network } = problem;
  if (!devices || !network) return undefined;
  const n = operators.name.length;
  const m = streams.source.length;
  const d = devices.name.length;
  return {
    rate: columnOf(operators.rate, n),
    source: streams.source,
    target: streams.target,
    selectivity: columnOf(streams.selectivity, m),
    windows: (operators.windows ?? []).map((w) => [
      w.operator,
      w.size,
      w.advance,
      w.base,
      w.factor,
      w.limit ?? Infinity,
    ]),
    joins: columnOf(operators.joins, n),
    ...(streams.input ? { inputs: streams.input } : {}),
    ...secondsOf(problem, n, d),
    ...(operators.subtasks === undefined ? {} : { subtasks: columnOf(operators.subtasks, n) }),
    ...(messages === undefined ? {} : { messages: messageData(messages, n, m) }),
    payload: columnOf(streams.payload, m),
    parallelism: columnOf(operators.parallelism, n),
    ...(operators.cores === undefined ? {} : { subtaskCores: columnOf(operators.cores, n) }),
    ...(operators.max_rate === undefined ? {} : { maxRate: columnOf(operators.max_rate, n) }),
    cores: columnOf(devices.cores, d),
    ...(devices.free_cores === undefined ? {} : { freeCores: columnOf(devices.free_cores, d) }),
    egress: columnOf(devices.egress, d),
    ingress: columnOf(devices.ingress, d),
    secondsPerByte: byDevice(network, network.seconds_per_byte, d),
    latency: byDevice(network, network.latency, d),
    overhead: network.overhead,
    overheadPerByte: network.overhead_per_byte ?? 0,
    gap: network.gap,
  };
}

/** Whether a unit may use a device by the constraints; pins to a lost device do not count. */
export function allowedBy({ constraints }: ProblemPart, lost: number): Rules["allows"] {
  const allowed = new Map<number, number[] | null>(constraints?.allowed ?? []);
  for (const [u, devices] of constraints?.unpinned ?? []) {
    if (allowed.get(u)?.[0] === lost) allowed.set(u, devices);
  }
  return (u, a) => a !== lost && (allowed.get(u)?.includes(a) ?? true);
}

/** Which operators share a device, and which devices they may use after the loss of one, or none. */
export function rulesOf(problem: ProblemPart, lost = -1): Rules {
  const { operators, devices } = problem;
  const unit = operators.unit ?? Array.from(operators.name.keys());
  const isAllowed = allowedBy(problem, lost);
  const memory = new Map<number, number>();
  unit.forEach((u, v) => memory.set(u, (memory.get(u) ?? 0) + at(operators.memory, v)));
  return {
    unit,
    allows: (u, a) =>
      isAllowed(u, a) &&
      (memory.get(u) ?? 0) <= (devices?.memory?.[a] ?? Infinity) * (1 + 1e-9),
  };
}

function messageData(messages: MessagesPart, n: number, m: number): MessageData {
  const { ipt, timeout, channels, contained } = messages;
  return { ipt, timeout, channels: columnOf(channels, m), contained: columnOf(contained, n) };
}

/** Core seconds per tuple and MIPS by type of device, and the type of every device. */
function secondsOf(
  problem: ProblemPart,
  n: number,
  d: number,
): Pick<ProblemData, "seconds" | "deviceType" | "constant" | "mips"> {
  const { constant } = problem.operators;
  const mips = columnOf(problem.devices?.mips ?? 1, d);
  const taken = (speeds: ArrayLike<number>): Pick<ProblemData, "constant" | "mips"> => ({
    mips: speeds,
    ...(constant === undefined
      ? {}
      : { constant: rows.map((v) => Array.from(speeds, (speed) => at(constant, v) / speed)) }),
  });
  const rows = Array.from({ length: n }, (_, v) => v);
  if (problem.seconds) {
    const columns = problem.seconds.map((column) => columnOf(column, n));
    return {
      seconds: rows.map((v) => columns.map((column) => column[v])),
      deviceType: Array.from({ length: d }, (_, a) => a),
      ...taken(mips),
    };
  }
  const speeds = [...new Set(mips)];
  return {
    seconds: rows.map((v) => speeds.map((speed) => at(problem.operators.ipt, v) / (speed * 1e6))),
    deviceType: Array.from(mips, (speed) => speeds.indexOf(speed)),
    ...taken(speeds),
  };
}

function byDevice(network: NetworkPart, cells: number[][], d: number): Float64Array[] {
  return Array.from({ length: d }, (_, a) =>
    Float64Array.from({ length: d }, (_, b) => cells[at(network.group, a)][at(network.group, b)]),
  );
}
