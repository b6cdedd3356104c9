/** CPU of messages between subtasks at any rate; the port of `streamplace.model.buffers`. */

import type { Flow } from "./flow";

export interface MessageData {
  /** Instructions per message, half of them at each end. */
  readonly ipt: number;
  /** Seconds after which a buffer is sent although it is not full. */
  readonly timeout: number;
  /** Channels between the subtasks at both ends of every stream; 0 in a chain. */
  readonly channels: ArrayLike<number>;
  /** Instructions per input tuple of every operator that are of messages. */
  readonly contained: ArrayLike<number>;
}

/** Share of the messages below which a difference is one of rounding. */
const ROUNDING = 1e-9;

/** MIPS of every operator for the messages that its instructions per tuple do not contain. */
export function messageMips(messages: MessageData, flow: Flow): Float64Array {
  const { ipt, timeout, channels, contained } = messages;
  const sent = new Float64Array(flow.n);
  for (let e = 0; e < flow.m; e++) {
    const joined = channels[flow.streamIndex[e]];
    if (joined <= 0) continue;
    const tuples = flow.tuples[e];
    const perSecond = tuples / (1 + (tuples / joined) * timeout);
    sent[flow.source[e]] += perSecond;
    sent[flow.target[e]] += perSecond;
  }
  return sent.map((perSecond, v) => {
    const needed = 0.5 * ipt * perSecond;
    const left = needed - flow.inputRate[v] * contained[v];
    return left > ROUNDING * needed ? left / 1e6 : 0;
  });
}
