"""Lower bounds on the largest load, and the limits that a better placement must respect."""

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.placers.exact.rate.bin_packing import largest_sum, packs
from streamplace.placers.exact.rate.branch_and_bound import Limits
from streamplace.placers.exact.rate.device_patterns import patterns_below
from streamplace.placers.exact.rate.units import Units


def simple_bound(units: Units) -> float:
    """Bound by the least load of each unit alone, and by all work over all devices."""
    alone = np.maximum(units.load, units.core).min(axis=1).max()
    power, work = powers(units)
    return max(float(alone), float(work.sum() / power.sum()))


def powers(units: Units) -> tuple[Floats, Floats]:
    """Powers of the devices [D] and work of the units [U]: load · power ≥ work everywhere."""
    usable = np.isfinite(units.load)
    anywhere = usable.all(axis=1)
    rows = anywhere if anywhere.any() else usable.any(axis=1)
    total = np.where(usable, units.load, 0.0)[rows].sum(axis=0)
    least = total.min(initial=np.inf, where=total > 0)
    power = np.divide(least, total, out=np.ones_like(total), where=total > 0)
    power[~usable.any(axis=0)] = 0.0
    scaled = np.multiply(units.load, power, out=np.full_like(units.load, np.inf), where=usable)
    return power, scaled.min(axis=1)


def limits_below(units: Units, cut: float) -> Limits:
    """Limits of a search for placements with all loads below the cut."""
    power, work = powers(units)
    full = np.full(units.n_devices, cut)
    equal = (units.load == units.load[:, :1]).all() and not units.handles
    if equal:
        full[:] = largest_sum(work, cut)
    wire = float(units.seconds_per_byte.max())
    ends = np.concatenate((units.source, units.target))
    bytes_around = np.bincount(ends, np.tile(units.traffic, 2), minlength=units.n_units)
    patterns = patterns_below(units, cut)
    return Limits(full, cut, work, power, wire, patterns, work + wire * bytes_around)


def hopeless(limits: Limits) -> bool:
    """Whether the CPU work alone exceeds the limits."""
    return not packs(limits.work, limits.full * limits.power)
