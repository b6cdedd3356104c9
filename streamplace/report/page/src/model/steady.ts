/** Throughput in the steady state; the port of `streamsim.steady`. */

import type { Filling } from "./filling";
import type { Loads } from "./loads";

/** Relative throughput of a placement, and the fraction that each source reaches. */
export function throughputOf(loads: Loads, filling: Filling): number {
  const { peak, instance } = loads;
  if (peak <= 1) {
    filling.rates.fill(1);
    return 1;
  }
  if (instance.flow.nGroups > 1) return filling.fill(loads);
  filling.rates.fill(1 / peak);
  return 1 / peak;
}
