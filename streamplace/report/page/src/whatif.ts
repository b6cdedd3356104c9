/** What a reader changes, step by step, and what comes of it. */

import { queueOf } from "./check";
import { type PlacementPart, type ProblemPart, at, columnOf } from "./document";
import { type Instance, type ProblemData, instanceOf } from "./model/instance";
import { Loads } from "./model/loads";
import { throughputOf } from "./model/steady";
import { Simulation } from "./pass/simulate";
import { passOf } from "./pass/work";
import { allowedBy, problemData, rulesOf } from "./read";
import { type Situation, type Times, situationOfLoads, timesOfDocument, timesOfSimulation } from "./situation";
import { bytes, shown } from "./text";

export interface State {
  readonly what: string;
  readonly place: Int32Array;
  /** Factor of all rates, factors of the speed of devices, and prices per hour. */
  readonly rate: number;
  readonly speed: Float64Array;
  readonly price: Float64Array;
  /** The device that is taken away, and the placement with it. */
  readonly away?: { readonly device: number; readonly place: Int32Array } | undefined;
}

/** One pass: that of the page, or of the document where nothing has changed. */
export function timesOf(whatif: WhatIf | false | undefined, placement: PlacementPart | undefined): Times | undefined {
  const own = whatif ? whatif.times : undefined;
  return own ?? (whatif && whatif.changed ? undefined : placement && timesOfDocument(placement));
}

export class WhatIf {
  private states: State[];
  private at = 0;
  /** Whether the last step changed the rate or a speed. */
  rescaled = false;
  private readonly data: ProblemData;
  private instance: Instance;
  private loads: Loads;
  private simulation: Simulation | undefined;
  private times_: Times | undefined;
  private situation_: Situation;
  private readonly listeners: (() => void)[] = [];

  constructor(
    readonly problem: ProblemPart,
    readonly placement: PlacementPart,
  ) {
    const data = problemData(problem);
    if (!data || !problem.devices) throw new Error("the problem has no devices");
    this.data = data;
    const d = problem.devices.name.length;
    this.states = [
      {
        what: "original",
        place: Int32Array.from(placement.place),
        rate: 1,
        speed: new Float64Array(d).fill(1),
        price: columnOf(problem.devices.price ?? 0, d),
      },
    ];
    this.instance = instanceOf(data);
    this.loads = new Loads(this.instance, placement.place);
    this.situation_ = situationOfLoads(this.loads, rulesOf(problem));
    this.compile();
  }

  get state(): State {
    return this.states[this.at];
  }

  get original(): State {
    return this.states[0];
  }

  get situation(): Situation {
    return this.situation_;
  }

  /** One pass under the present placement; absent if its rules differ. */
  get times(): Times | undefined {
    if (!this.simulation) return undefined;
    if (!this.times_) {
      this.simulation.run(this.loads.place);
      this.times_ = timesOfSimulation(this.simulation);
    }
    return this.times_;
  }

  /** Whether the inputs of every operator that fires once per set still have one rate. */
  get agrees(): boolean {
    return this.instance.flow.agrees;
  }

  get changed(): boolean {
    return this.at > 0;
  }

  get undoes(): string {
    return this.at > 0 ? this.state.what : "";
  }

  get redoes(): string {
    return this.at + 1 < this.states.length ? this.states[this.at + 1].what : "";
  }

  /** Price per hour of the devices in use; absent where devices have none. */
  get cost(): number | undefined {
    return this.costOf(this.state);
  }

  get originalCost(): number | undefined {
    return this.costOf(this.original);
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Operators that move together with some: the other operators of their units. */
  together(operators: readonly number[]): number[] {
    const { unit } = this.problem.operators;
    if (!unit) return [...operators];
    const units = new Set(operators.map((v) => unit[v]));
    return Array.from(unit.keys()).filter((v) => units.has(unit[v]));
  }

  move(operators: readonly number[], device: number, what: string): void {
    const place = this.state.place.slice();
    for (const v of this.together(operators)) place[v] = device;
    this.enter({ ...this.state, what, place });
  }

  /** Relative throughput if some operators were on a device. */
  preview(operators: readonly number[], device: number): number {
    const moved = this.together(operators);
    for (const v of moved) this.loads.move(v, device);
    const reached = throughputOf(this.loads);
    for (const v of moved) this.loads.move(v, this.state.place[v]);
    return reached;
  }

  /** Why some operators may not be on a device, in a sentence; "" if they may. */
  forbidden(
    operators: readonly number[],
    device: number,
    place: Int32Array = this.state.place,
    lost = this.state.away?.device ?? -1,
  ): string {
    const { constraints, devices, operators: all } = this.problem;
    const moved = new Set(this.together(operators));
    const name = shown(devices?.name[device] ?? "");
    if (device === lost) return `${name} is taken away.`;
    if (constraints && all.unit) {
      const units = new Set([...moved].map((v) => all.unit?.[v] ?? -1));
      const isAllowed = allowedBy(this.problem, lost);
      if (![...units].every((u) => isAllowed(u, device))) return `The constraints do not allow it on ${name}.`;
      const there = new Set(
        Array.from(constraints.apart.length > 0 ? place.keys() : [])
          .filter((v) => place[v] === device && !moved.has(v))
          .map((v) => all.unit?.[v] ?? -1),
      );
      const clash = constraints.apart.some(
        ([a, b]) => (units.has(a) && there.has(b)) || (units.has(b) && there.has(a)),
      );
      if (clash) return `It must not share ${name} with an operator that is there.`;
    }
    return this.overfull(moved, device, place, name);
  }

  private overfull(moved: ReadonlySet<number>, device: number, place: Int32Array, name: string): string {
    const room = this.problem.devices?.memory?.[device];
    if (room === null || room === undefined) return "";
    let used = 0;
    place.forEach((a, v) => {
      if (a === device || moved.has(v)) used += at(this.problem.operators.memory, v);
    });
    if (used <= room * (1 + 1e-9)) return "";
    return `${name} has ${bytes(room)} of memory, and would need ${bytes(used)}.`;
  }

  /**
   * Take a device away, and put back another one. Its units, the largest first, go where the
   * throughput is highest then, of equal ones to the device with the lowest load; no others move.
   * False if no place is found for one of them.
   */
  takeAway(device: number): boolean {
    const before = this.state.away?.place ?? this.state.place;
    const loads = new Loads(this.instance, before);
    const { d, load } = this.instance;
    const lost = Array.from(before.keys()).filter((v) => before[v] === device);
    const units = new Map<number, number[]>();
    for (const v of lost) {
      const u = this.problem.operators.unit?.[v] ?? v;
      units.set(u, [...(units.get(u) ?? []), v]);
      loads.move(v, -1);
    }
    const put = (unit: readonly number[], a: number): void => unit.forEach((v) => loads.move(v, a));
    const size = (unit: readonly number[]): number => unit.reduce((sum, v) => sum + load[v * d + device], 0);
    for (const unit of [...units.values()].sort((a, b) => size(b) - size(a))) {
      let [best, most, least] = [-1, -1, Infinity];
      for (let a = 0; a < d; a++) {
        if (this.forbidden(unit, a, loads.place, device)) continue;
        put(unit, a);
        const [reached, full] = [throughputOf(loads), loads.device(a)];
        put(unit, -1);
        if (reached > most || (reached === most && full < least)) [best, most, least] = [a, reached, full];
      }
      if (best < 0) return false;
      put(unit, best);
    }
    const what = `${shown(this.problem.devices?.name[device] ?? "", 24)} away`;
    this.enter({ ...this.state, what, place: loads.place, away: { device, place: before } });
    return true;
  }

  /** Put back the device that is away, and its operators. */
  putBack(): void {
    const { away } = this.state;
    if (away) this.enter({ ...this.state, what: "device put back", place: away.place, away: undefined });
  }

  /** Throughput with the removed device and its operators in place. */
  get throughputBefore(): number {
    return throughputOf(new Loads(this.instance, this.state.away?.place ?? this.state.place));
  }

  /** Change a number; further changes of the same number are one step. */
  setRate(rate: number): void {
    this.enter({ ...this.state, what: "rate", rate }, this.undoes === "rate");
  }

  setSpeed(device: number, factor: number): void {
    const speed = this.state.speed.slice();
    speed[device] = factor;
    const what = `speed of ${shown(this.problem.devices?.name[device] ?? "", 24)}`;
    this.enter({ ...this.state, what, speed }, this.undoes === what);
  }

  setPrice(device: number, each: number): void {
    const price = this.state.price.slice();
    price[device] = each;
    const what = `price of ${shown(this.problem.devices?.name[device] ?? "", 24)}`;
    this.enter({ ...this.state, what, price }, this.undoes === what);
  }

  undo(): void {
    if (this.at > 0) this.go(this.at - 1);
  }

  redo(): void {
    if (this.at + 1 < this.states.length) this.go(this.at + 1);
  }

  reset(): void {
    if (this.changed) this.enter({ ...this.original, what: "back to the original" });
  }

  private costOf(state: State): number | undefined {
    if (this.problem.devices?.price === undefined) return undefined;
    return [...new Set(state.place)].reduce((sum, a) => sum + state.price[a], 0);
  }

  private enter(state: State, instead = false): void {
    const from = this.state;
    this.states = [...this.states.slice(0, instead ? this.at : this.at + 1), state];
    this.at = this.states.length - 1;
    this.apply(from, state);
  }

  private go(at: number): void {
    const from = this.state;
    this.at = at;
    this.apply(from, this.state);
  }

  private apply(from: State, to: State): void {
    this.rescaled = from.rate !== to.rate || from.speed.some((f, a) => f !== to.speed[a]);
    if (this.rescaled) {
      this.instance = instanceOf(this.data, { rate: to.rate, speed: to.speed });
      this.loads = new Loads(this.instance, to.place);
      this.compile();
    } else {
      to.place.forEach((device, v) => this.loads.move(v, device));
    }
    this.situation_ = situationOfLoads(this.loads, rulesOf(this.problem, to.away?.device));
    this.times_ = undefined;
    for (const listener of this.listeners) listener();
  }

  private compile(): void {
    const queue = queueOf(this.placement);
    if (!queue) return;
    this.simulation = new Simulation(passOf(this.instance, queue, this.placement.priority));
    this.times_ = undefined;
  }
}
