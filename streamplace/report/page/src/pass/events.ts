/** Events in the order (time, number): a heap for later ones, a ring for those of this instant. */

export class Events {
  private readonly time: Float64Array;
  private readonly number: Float64Array;
  private readonly event: Int32Array;
  private readonly ring: Int32Array;
  private readonly mask: number;
  private oldest = 0;
  private given = 0;
  /** Events in the heap, and events of this instant. */
  waiting = 0;
  present = 0;

  constructor(capacity: number) {
    this.time = new Float64Array(capacity + 1);
    this.number = new Float64Array(capacity + 1);
    this.event = new Int32Array(capacity + 1);
    let size = 1;
    while (size <= capacity) size *= 2;
    this.ring = new Int32Array(size);
    this.mask = size - 1;
  }

  clear(given: number): void {
    this.waiting = 0;
    this.present = 0;
    this.oldest = 0;
    this.given = given;
  }

  nextNumber(): number {
    return ++this.given;
  }

  /** When the first event of the heap happens. */
  get first(): number {
    return this.waiting > 0 ? this.time[0] : Infinity;
  }

  presentAt(i: number): number {
    return this.ring[(this.oldest + i) & this.mask];
  }

  pushNow(event: number): void {
    this.ring[(this.oldest + this.present) & this.mask] = event;
    this.present++;
  }

  popNow(): number {
    const event = this.ring[this.oldest];
    this.oldest = (this.oldest + 1) & this.mask;
    this.present--;
    return event;
  }

  push(now: number, time: number, event: number): void {
    if (time > now) this.pushLater(time, this.nextNumber(), event);
    else this.pushNow(event);
  }

  pushLater(time: number, number: number, event: number): void {
    let i = this.waiting++;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (this.comesBefore(up, time, number)) break;
      this.put(i, this.time[up], this.number[up], this.event[up]);
      i = up;
    }
    this.put(i, time, number, event);
  }

  popLater(): number {
    const event = this.event[0];
    const size = --this.waiting;
    const time = this.time[size];
    const number = this.number[size];
    const moved = this.event[size];
    let i = 0;
    let down = 1;
    while (down < size) {
      if (down + 1 < size && this.comesBefore(down + 1, this.time[down], this.number[down])) down++;
      if (!this.comesBefore(down, time, number)) break;
      this.put(i, this.time[down], this.number[down], this.event[down]);
      i = down;
      down = 2 * down + 1;
    }
    this.put(i, time, number, moved);
    return event;
  }

  private comesBefore(i: number, time: number, number: number): boolean {
    return this.time[i] < time || (this.time[i] === time && this.number[i] < number);
  }

  private put(i: number, time: number, number: number, event: number): void {
    this.time[i] = time;
    this.number[i] = number;
    this.event[i] = event;
  }
}
