/** Who gets the next free core: queues in order of arrival, heaps by priority, and lines. */

import type { Pass } from "./work";

export class Cores {
  private readonly free: Int32Array;
  private readonly head: Int32Array;
  private readonly tail: Int32Array;
  private readonly marked: Uint8Array;
  private readonly touched: Int32Array;
  private readonly next: Int32Array;
  /** First child in a heap; in a line, whether all inputs are there. */
  private readonly child: Int32Array;
  private nTouched = 0;
  private granted = 0;

  constructor(private readonly pass: Pass) {
    const { n, d } = pass.instance;
    this.free = new Int32Array(d);
    this.head = new Int32Array(d);
    this.tail = new Int32Array(d);
    this.marked = new Uint8Array(d);
    this.touched = new Int32Array(d);
    this.next = new Int32Array(n);
    this.child = new Int32Array(n);
  }

  clear(place: Int32Array): void {
    this.free.set(this.pass.cores);
    this.head.fill(-1);
    this.marked.fill(0);
    this.nTouched = 0;
    this.granted = 0;
    if (this.pass.queue === "order") this.lineUp(place);
  }

  /** Whether a device may have something to start when this instant is over. */
  get pending(): boolean {
    return this.nTouched > 0;
  }

  /** Whether somebody still waits in a line. */
  get isLeft(): boolean {
    return this.head.some((v) => v >= 0);
  }

  /** Give a ready operator a core (true), or a place in the queue of its device (false). */
  offer(v: number, d: number): boolean {
    if (this.pass.queue !== "fifo") {
      if (this.pass.queue === "order") this.child[v] = 1;
      else this.enter(v, d);
      this.touch(d);
      return false;
    }
    if (this.free[d] > 0) {
      this.free[d]--;
      return true;
    }
    this.next[v] = -1;
    if (this.head[d] < 0) this.head[d] = v;
    else this.next[this.tail[d]] = v;
    this.tail[d] = v;
    return false;
  }

  /** Give up a core of a device; the operator that takes it over at once, or -1. */
  release(d: number): number {
    if (this.pass.queue !== "fifo") {
      this.touch(d);
      this.free[d]++;
      return -1;
    }
    const v = this.head[d];
    if (v < 0) this.free[d]++;
    else this.head[d] = this.next[v];
    return v;
  }

  /** Give a free core of a touched device to the first that waits there; -1 if there is none. */
  nextGranted(): number {
    const inLine = this.pass.queue === "order";
    while (this.granted < this.nTouched) {
      const d = this.touched[this.granted];
      const v = this.head[d];
      if (this.free[d] > 0 && v >= 0 && (!inLine || this.child[v] === 1)) {
        this.free[d]--;
        this.head[d] = inLine ? this.next[v] : this.withoutRoot(v);
        return v;
      }
      this.marked[d] = 0;
      this.granted++;
    }
    this.nTouched = 0;
    this.granted = 0;
    return -1;
  }

  private lineUp(place: Int32Array): void {
    const { line } = this.pass;
    for (let i = line.length - 1; i >= 0; i--) {
      const v = line[i];
      this.child[v] = 0;
      this.next[v] = this.head[place[v]];
      this.head[place[v]] = v;
    }
  }

  private touch(d: number): void {
    if (this.marked[d]) return;
    this.marked[d] = 1;
    this.touched[this.nTouched++] = d;
  }

  private enter(v: number, d: number): void {
    this.child[v] = -1;
    this.next[v] = -1;
    this.head[d] = this.meld(this.head[d], v);
  }

  /** Pairing heap without its first operator: melds the children in pairs, then the pairs. */
  private withoutRoot(root: number): number {
    let paired = -1;
    let v = this.child[root];
    while (v >= 0) {
      const other = this.next[v];
      const following = other >= 0 ? this.next[other] : -1;
      const pair = this.meld(v, other);
      this.next[pair] = paired;
      paired = pair;
      v = following;
    }
    if (paired < 0) return -1;
    let rest = paired;
    paired = this.next[paired];
    while (paired >= 0) {
      const following = this.next[paired];
      rest = this.meld(rest, paired);
      paired = following;
    }
    this.next[rest] = -1;
    return rest;
  }

  private meld(a: number, b: number): number {
    if (a < 0 || b < 0) return Math.max(a, b);
    const { priority } = this.pass;
    if (priority[b] > priority[a] || (priority[b] === priority[a] && b < a)) [a, b] = [b, a];
    this.next[b] = this.child[a];
    this.child[a] = b;
    this.next[a] = -1;
    return a;
  }
}
