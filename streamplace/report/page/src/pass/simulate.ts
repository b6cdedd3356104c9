/** One pass, event by event, on a free network; the port of `streamsim.passes.event_loop`.
 *
 * Events happen in the order (time, number). Each step of an operator (its last input arrives, is
 * counted, makes it ready; it gets a core, finishes, sends) is an event of its own at the same
 * instant, because ties are common and this order decides them.
 */

import { Cores } from "./cores";
import { Events } from "./events";
import { type Pass, transferSeconds } from "./work";

const BITS = 24;
const MASK = (1 << BITS) - 1;
const ARRIVED = 0 << BITS;
const COUNTED = 1 << BITS;
const READY = 2 << BITS;
const GRANTED = 3 << BITS;
const FINISHED = 4 << BITS;
const SENDS = 5 << BITS;

export class Simulation {
  readonly ready: Float64Array;
  readonly start: Float64Array;
  readonly finish: Float64Array;
  readonly departure: Float64Array;
  readonly arrival: Float64Array;
  place: Int32Array = new Int32Array(0);
  makespan = 0;
  private readonly waiting: Int32Array;
  private readonly number: Float64Array;
  private readonly events: Events;
  private readonly cores: Cores;
  private granting = false;
  private alone = 0;
  private now = 0;

  constructor(readonly pass: Pass) {
    const { n, m } = pass.instance;
    this.ready = new Float64Array(n);
    this.start = new Float64Array(n);
    this.finish = new Float64Array(n);
    this.departure = new Float64Array(m);
    this.arrival = new Float64Array(m);
    this.waiting = new Int32Array(n);
    this.number = new Float64Array(n);
    this.events = new Events(2 * n + 1);
    this.cores = new Cores(pass);
  }

  /** Makespan in seconds; ∞ where the line of a device contradicts the streams. */
  run(place: Int32Array): number {
    this.begin(place);
    for (;;) {
      if (this.nextEvent()) continue;
      if (this.cores.pending) {
        this.granting = true;
        continue;
      }
      const time = this.events.first;
      if (time === Infinity) break;
      this.now = time;
    }
    const stuck = this.pass.queue === "order" && this.cores.isLeft;
    this.makespan = stuck ? Infinity : this.now;
    return this.makespan;
  }

  private begin(place: Int32Array): void {
    const { pass, events } = this;
    const { n } = pass.instance;
    this.place = place;
    this.now = 0;
    this.granting = false;
    this.ready.fill(0);
    this.waiting.set(pass.inputs);
    events.clear(n);
    this.cores.clear(place);
    for (let v = 0; v < n; v++) {
      this.number[v] = v;
      if (this.waiting[v] === 0) events.pushNow(ARRIVED | v);
    }
    this.alone = events.present;
  }

  /** Carry out the next event of this instant; false if the instant is over. */
  private nextEvent(): boolean {
    const { events } = this;
    if (this.alone > 0) {
      this.alone--;
      this.step(events.popNow(), true);
      return true;
    }
    if (this.granting) {
      const v = this.cores.nextGranted();
      if (v >= 0) {
        this.step(GRANTED | v, false);
        return true;
      }
      this.granting = false;
    }
    let event: number;
    if (events.first <= this.now) event = events.popLater();
    else if (events.present > 0) event = events.popNow();
    else return false;
    this.step(event, events.first > this.now && events.present === 0);
    return true;
  }

  private step(event: number, alone: boolean): void {
    const kind = event & ~MASK;
    const v = event & MASK;
    const starts = this.getsCore(kind, v, alone);
    if (starts >= 0) {
      if (alone || kind === GRANTED) this.begins(starts);
      else this.events.pushNow(GRANTED | starts);
    }
    if (kind === SENDS || (kind === FINISHED && alone)) this.send(v);
    else if (kind === FINISHED) this.events.pushNow(SENDS | v);
    if (alone && kind === FINISHED) this.alone = this.arrivalsAlone();
  }

  private begins(v: number): void {
    const { pass, place, now } = this;
    this.start[v] = now;
    this.finish[v] = now + pass.work[v * pass.instance.d + place[v]];
    this.events.push(now, this.finish[v], FINISHED | v);
  }

  /** Operator that gets a core by this event, -1 if there is none. */
  private getsCore(kind: number, v: number, alone: boolean): number {
    if (kind === GRANTED) return v;
    if (kind === READY || (kind === ARRIVED && alone)) {
      return this.cores.offer(v, this.place[v]) ? v : -1;
    }
    if (kind === ARRIVED || kind === COUNTED) this.events.pushNow((kind + COUNTED) | v);
    else if (kind === FINISHED) return this.cores.release(this.place[v]);
    return -1;
  }

  private send(v: number): void {
    const { pass, place, now } = this;
    const { flow } = pass.instance;
    const a = place[v];
    for (let e = flow.outStart[v]; e < flow.outEnd[v]; e++) {
      const b = place[flow.target[e]];
      this.departure[e] = now;
      this.arrive(e, a === b ? now : now + transferSeconds(pass, e, a, b));
    }
  }

  private arrive(e: number, time: number): void {
    const v = this.pass.instance.flow.target[e];
    const given = this.events.nextNumber();
    this.arrival[e] = time;
    if (time >= this.ready[v]) {
      this.ready[v] = time;
      this.number[v] = given;
    }
    if (--this.waiting[v] > 0) return;
    if (this.ready[v] > this.now) this.events.pushLater(this.ready[v], this.number[v], ARRIVED | v);
    else this.events.pushNow(ARRIVED | v);
  }

  /** Events of this instant if all are arrivals, which may then be carried out at once; else 0. */
  private arrivalsAlone(): number {
    const { events } = this;
    for (let i = 0; i < events.present; i++) {
      if ((events.presentAt(i) & ~MASK) !== ARRIVED) return 0;
    }
    return events.present;
  }
}
