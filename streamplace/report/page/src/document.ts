/** The document of a report, as `streamplace/report/document.py` describes it. */

export type Column = number[] | number;
export type Texts = string[] | string;

export interface WindowPart {
  operator: number;
  size: number;
  advance: number;
  base: number;
  factor: number;
  limit: number | null;
}

export interface OperatorsPart {
  name: string[];
  kind: Texts;
  ipt: Column;
  rate: Column;
  parallelism: Column;
  joins: Column;
  memory: Column;
  windows?: WindowPart[];
  unit?: number[];
  /** MIPS that operators use at any rate, and the subtasks that share them and those of messages. */
  constant?: Column;
  subtasks?: Column;
  /** Cores that one subtask uses at most. */
  cores?: Column;
  /** Tuples/s that one subtask reads at most, 0 without a limit. */
  max_rate?: Column;
}

export interface StreamsPart {
  source: number[];
  target: number[];
  selectivity: Column;
  payload: Column;
  input?: number[];
}

export interface MessagesPart {
  ipt: number;
  timeout: number;
  channels: Column;
  contained: Column;
  mips: Column;
}

export interface DevicesPart {
  name: string[];
  mips: Column;
  cores: Column;
  free_cores?: Column;
  egress: Column;
  ingress: Column;
  memory: (number | null)[] | null;
  price?: Column;
}

export interface NetworkPart {
  group: Column;
  seconds_per_byte: number[][];
  latency: number[][];
  overhead: number;
  overhead_per_byte?: number;
  gap: number;
}

export interface ConstraintsPart {
  allowed: [number, number[]][];
  unpinned: [number, number[] | null][];
  apart: [number, number][];
}

export interface LayoutPart {
  width: number;
  height: number;
  layer: number[];
  x: number[];
  y: number[];
  bends?: (number[] | 0)[];
  extent: [number, number];
}

export interface GroupsPart {
  by: string;
  of: number[];
  name: string[];
}

export interface ResourcePart {
  kind: "device" | "core" | "link" | "egress" | "ingress";
  device: number;
  peer: number;
}

export interface LimitPart extends ResourcePart {
  load: number;
}

export interface LoadsPart {
  devices: number[];
  egress: number[];
  ingress: number[];
  links: [number, number, number][];
}

export interface ChainPiece {
  what: string;
  operator: number;
  stream: number;
  begin: number;
  end: number;
}

export interface PassPart {
  queue: string;
  network: string;
  pause: number;
  makespan: number;
  start: number[];
  finish: number[];
  chain: ChainPiece[];
}

export interface LevelPart {
  share: number;
  sources: number[];
  stuck: number[];
  limit: ResourcePart;
}

export interface PlacementPart {
  name: string;
  place: number[];
  priority?: number[];
  queue?: string;
  throughput: number;
  sources: [number, number][];
  /** Shares at which several sources run at once that are not carried whole. */
  levels?: LevelPart[];
  bottleneck: LimitPart;
  /** Load of the bottleneck relative to what constant loads leave of it, if there are any. */
  pressure?: number;
  loads: LoadsPart;
  value: number;
  words: string;
  bound?: number;
  marks: { operators: number[]; streams: number[] };
  one_pass?: PassPart;
}

export interface ObjectivePart {
  name: string;
  sense: "max" | "min";
  unit: string;
}

export interface ErrorsPart {
  low: number;
  high: number;
  words: string;
}

export interface ProblemPart {
  name: string;
  what_if: string;
  operators: OperatorsPart;
  streams: StreamsPart;
  messages?: MessagesPart;
  layout: LayoutPart;
  groups: GroupsPart[];
  devices?: DevicesPart;
  network?: NetworkPart;
  constraints?: ConstraintsPart;
  seconds?: Column[];
  objective?: ObjectivePart;
  command?: string;
  errors?: ErrorsPart;
  assumptions?: string[];
  placements: PlacementPart[];
}

export interface PairedPart {
  graphs: number;
  better: number;
  equal: number;
  worse: number;
  sign_test: number;
  signed_rank_test: number;
  ratio: number | null;
  interval: [number, number] | null;
}

export interface ComparedPart {
  objective: ObjectivePart;
  rate: number | null;
  placers: string[];
  rows: {
    mean?: number | null;
    share_of_optimum?: number | null;
    reached?: number | null;
    proven?: number;
    graphs?: number;
    ms_per_graph?: number | null;
    paired?: Record<string, PairedPart>;
  }[];
  values: (number | null)[][];
  milliseconds: number[][];
  optimum: (number | null)[];
}

export interface ComparisonPart {
  graphs: string[];
  problem: (number | null)[];
  reference: string;
  aliases: Record<string, string>;
  results: ComparedPart[];
  failures: Record<string, string>;
}

export interface CurvePart {
  at: number;
  cost: number;
  bound: number;
  gap: number;
  machines: Record<string, number>;
}

export interface PlanPart {
  rate: number;
  cost: number;
  bound: number;
  gap: number;
  cheapest: boolean;
  priced: boolean;
  machines: { name: string; number: number; price: number | null; contents: string }[];
  free: Record<string, number>;
  carries: number | null;
  curve: CurvePart[];
}

export interface ReportDocument {
  version: number;
  made_by: string;
  title: string;
  notes: string[];
  problems: ProblemPart[];
  comparison?: ComparisonPart;
  plan?: PlanPart;
}

/** A value of a column, which may be one for all rows. */
export function at<T>(column: readonly T[] | T, row: number): T {
  return Array.isArray(column) ? column[row] : (column as T);
}

export function columnOf(column: Column, size: number): Float64Array {
  return typeof column === "number"
    ? new Float64Array(size).fill(column)
    : Float64Array.from(column);
}
