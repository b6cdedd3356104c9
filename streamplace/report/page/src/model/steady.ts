/** Throughput in the steady state; the port of `streamsim.steady`. */

import type { Loads } from "./loads";

/** Largest share of their rates at which all sources can run at once. */
export function throughputOf(loads: Loads): number {
  return 1 / Math.max(1, loads.peak);
}
