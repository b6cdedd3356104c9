/** What can be said of the operators and streams of a problem, whether or not they can be moved. */

import { type LevelPart, type ProblemPart, type ResourcePart, at } from "./document";
import { type Instance, instanceOf, pressure } from "./model/instance";
import { problemData } from "./read";
import type { Situation } from "./situation";
import { number, percent, shown } from "./text";

/** Operators that are named where each of them fills a core. */
const MAX_NAMED = 4;
/** Load above which a resource is too small. */
export const FULL = 1 + 1e-9;

export class Facts {
  readonly devices: readonly string[];
  readonly totalRate: number;
  private instance: Instance | undefined;
  private traffic_: Float64Array = new Float64Array(0);
  private most = 1;

  constructor(readonly problem: ProblemPart) {
    this.devices = problem.devices?.name ?? [];
    const n = problem.operators.name.length;
    this.totalRate = Array.from({ length: n }, (_, v) => at(problem.operators.rate, v)).reduce(
      (sum, rate) => sum + rate,
      0,
    );
    this.change(1, undefined);
  }

  /** Follow changes of the rate and of speeds. */
  change(rate: number, speed: ArrayLike<number> | undefined): void {
    const data = problemData(this.problem);
    this.instance = data && instanceOf(data, speed ? { rate, speed } : { rate });
    this.traffic_ = this.trafficOf();
    this.most = this.traffic_.reduce((most, size) => Math.max(most, size), 1);
  }

  /** Bytes per second of every stream at full rate, if known. */
  get traffic(): Float64Array {
    return this.traffic_;
  }

  get mostTraffic(): number {
    return this.most;
  }

  /** MIPS of an operator for messages that its work per tuple does not contain. */
  messages(v: number): number {
    return this.instance?.messages[v] ?? at(this.problem.messages?.mips ?? 0, v);
  }

  /** Share of a device that an operator takes at full rate. */
  share(v: number, device: number): number {
    const { instance } = this;
    if (!instance) return 0;
    const i = v * instance.d + device;
    return instance.load[i] + (instance.constant[i] ?? 0);
  }

  /** Load of its busiest subtask at full rate, as a share of the core less constant loads. */
  core(v: number, device: number): number {
    const { instance } = this;
    if (!instance) return 0;
    const i = v * instance.d + device;
    return pressure(instance.coreLoad[i], instance.coreConstant[i] ?? 0);
  }

  inputRate(v: number): number | undefined {
    return this.instance?.flow.inputRate[v];
  }

  tuples(e: number): number | undefined {
    const index = this.instance?.flow.streamIndex.indexOf(e);
    return index === undefined ? undefined : this.instance?.flow.tuples[index];
  }

  name(v: number): string {
    return shown(this.problem.operators.name[v]);
  }

  device(a: number): string {
    return shown(this.devices[a] ?? "");
  }

  /** A resource in words. */
  resource(limit: ResourcePart): string {
    const name = this.device(limit.device);
    if (limit.kind === "device") return `the CPU of ${name}`;
    if (limit.kind === "core") return `one core of ${name}`;
    if (limit.kind === "link") return `the link from ${name} to ${this.device(limit.peer)}`;
    return `the ${limit.kind === "egress" ? "outgoing" : "incoming"} network card of ${name}`;
  }

  /** Operators with a subtask on the core that limits first, the heaviest first. */
  filling({ bottleneck, place }: Situation): number[] {
    if (bottleneck.kind !== "core" || bottleneck.load <= 1 || !this.instance) return [];
    const rows = Array.from(place, (_, v) => v).filter((v) => place[v] === bottleneck.device);
    const shares = rows.map((v) => this.core(v, bottleneck.device));
    const full = shares.reduce((most, share) => Math.max(most, share), 0) * (1 - 1e-9);
    const chosen = rows.filter((_, i) => shares[i] >= full);
    return chosen.sort((u, v) => this.coreUse(v, bottleneck.device) - this.coreUse(u, bottleneck.device));
  }

  /** What limits the throughput, in a sentence. */
  sentence(situation: Situation): string {
    const limit = situation.bottleneck;
    const slow = this.atLargestRate(situation);
    const resource = slow < 0 ? this.resource(limit) : this.slowSubtask(slow);
    const load = percent(this.limitLoad(situation));
    if (!(limit.load > 0)) return "No resource is used.";
    if (limit.load <= 1) {
      return `Every source runs at its full rate. The fullest resource is ${resource}, ${load} busy.`;
    }
    const first = resource[0].toUpperCase() + resource.slice(1);
    const who = slow < 0 ? this.whoFills(this.filling(situation)) : "";
    const rest = this.rest(situation);
    const reason = `${first} is the bottleneck: the full rate would need ${load} of it${who}${rest && `: ${rest}`}.`;
    return reason + this.sources(situation);
  }

  /** What each of several sources gets that is not carried whole, the least first. */
  private sources(situation: Situation): string {
    const rows = this.problem.operators.name.map((_, v) => v).filter((v) => at(this.problem.operators.rate, v) > 0);
    if (rows.length < 2) return "";
    const levels = situation.levels().map((level, i) => this.level(level, i > 0));
    const shares = rows.map((v): [number, number] => [v, situation.reached(v) ?? 1]);
    const least = shares.filter(([, share]) => share < 1 - 5e-4).sort((a, b) => a[1] - b[1]);
    const words = some(least.map(([v, share]) => `${this.name(v)} ${percent(share)}`));
    return ` Not carried whole: ${levels.join("; ")}. If all sources offer their rates, they get: ${words}.`;
  }

  /** Sources that run at one share, and why no more; what limits the first ones is told elsewhere. */
  private level({ share, sources, stuck, limit }: LevelPart, isFurther: boolean): string {
    const names = some(sources.map((v) => this.name(v)));
    const why = stuck.length ? `, as no device that may run ${some(stuck.map((v) => this.name(v)))} is faster` : "";
    const by = isFurther ? `, by ${this.resource(limit)}` : "";
    return `${names}: ${percent(share)} of their rates at once${by}${why}`;
  }

  /** What limits of a device, as where the device is listed: with the load that makes it the limit. */
  limitOf(situation: Situation, device: number): string {
    const { bottleneck } = situation;
    if (bottleneck.device !== device || !(bottleneck.load > 0)) return "";
    const full = bottleneck.load > FULL;
    if (bottleneck.kind === "device") {
      const rest = full ? this.rest(situation) : "";
      return `${full ? "bottleneck" : "fullest"}${rest && `: ${rest}`}`;
    }
    const slow = this.atLargestRate(situation);
    const resource = {
      core: slow < 0 ? "one core" : `a subtask of ${this.name(slow)}`,
      link: `link to ${this.device(bottleneck.peer)}`,
      egress: "outgoing card",
      ingress: "incoming card",
    }[bottleneck.kind];
    return `${full ? "bottleneck" : "fullest"}: ${resource} at ${percent(this.limitLoad(situation))}`;
  }

  /** Load of what limits; of a subtask at its largest rate, as a share of that rate. */
  private limitLoad(situation: Situation): number {
    const slow = this.atLargestRate(situation);
    return slow < 0 ? situation.bottleneck.load : (this.instance?.rateShare[slow] ?? 0);
  }

  /** Share that the rate needs of what a device has left, where operators use some at any rate. */
  private rest({ bottleneck: { kind, device, load }, place }: Situation): string {
    const { instance } = this;
    if (kind !== "device" || !instance || instance.constant.length === 0) return "";
    const taken = Array.from(place, (a, v) => (a === device ? instance.constant[v * instance.d + a] : 0));
    const always = taken.reduce((total, share) => total + share, 0);
    if (!(always > 0)) return "";
    return `${percent(always)} at any rate, ${percent(pressure(load - always, always))} of the rest`;
  }

  /** Operator with a subtask that is the bottleneck by its largest rate; -1 without any. */
  private atLargestRate({ bottleneck, place }: Situation): number {
    const { instance } = this;
    if (bottleneck.kind !== "core" || !instance) return -1;
    const rows = Array.from(place, (_, v) => v).filter((v) => place[v] === bottleneck.device);
    const full = rows.reduce((most, v) => Math.max(most, this.core(v, bottleneck.device)), 0);
    const slow = rows.filter((v) => instance.rateShare[v] > 0 && instance.rateShare[v] >= full * (1 - 1e-9));
    return slow.reduce((u, v) => (u < 0 || instance.rateShare[v] > instance.rateShare[u] ? v : u), -1);
  }

  private slowSubtask(v: number): string {
    const { max_rate, rate } = this.problem.operators;
    const does = at(rate, v) > 0 ? "emits" : "reads";
    return `a subtask of ${this.name(v)} (${does} at most ${number(at(max_rate ?? 0, v))} tuples/s)`;
  }

  /** Share of its core that the busiest subtask of an operator takes at full rate. */
  private coreUse(v: number, device: number): number {
    const { instance } = this;
    if (!instance) return 0;
    const i = v * instance.d + device;
    return instance.coreLoad[i] + (instance.coreConstant[i] ?? 0);
  }

  /** Which operators fill a core, as part of a sentence; nothing where none do. */
  private whoFills(rows: readonly number[]): string {
    const names = rows.slice(0, MAX_NAMED).map((v) => this.name(v));
    if (names.length === 0) return "";
    if (names.length === 1) return `, which ${names[0]} fills alone`;
    return `, which each of ${names.join(", ")} fills`;
  }

  private trafficOf(): Float64Array {
    const { streams } = this.problem;
    const { instance } = this;
    const traffic = new Float64Array(streams.source.length);
    if (instance) {
      instance.flow.streamIndex.forEach((e, i) => (traffic[e] = instance.traffic[i]));
    }
    return traffic;
  }
}

/** A few names. */
function some(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  return names.slice(0, MAX_NAMED).join(", ") + more;
}
