"""Defaults that the command line shows in its help; imports nothing, so that help stays fast."""

DEVICES, MIPS, BPS = 5, 2500.0, 1e9
"""Devices of the cluster that is assumed, the speed of their cores, and the bandwidth of links."""

PLACE_SECONDS = 1.0
"""Search time for a placement."""
PLAN_SECONDS = 10.0
"""Search time for a plan."""
SAVEPOINT_SECONDS = 600.0
"""Seconds within which a savepoint must be complete."""
START_SECONDS = 120.0
"""Seconds within which a job must run, its state restored."""
PATIENCE_SECONDS = 120.0
"""Seconds within which a job must be steady to be measured."""
COMPARED = "metis,metis-oracle,fuser,fuser-oracle,anneal,exact"
"""Placers that are compared."""
REFERENCE = "metis"
"""Placer that the others are compared with."""
PRESET = "fast"
"""Options with which a model is trained."""
TRIES = 3
"""Layouts that a move tries."""
FLINK_HEADROOM = 0.03
"""Share of every CPU and link that Flink's jobs leave: bursts cannot use all of a full one."""
SPEED, BANDWIDTH = f"{MIPS:g} MIPS", f"{BPS / 1e6:g} Mbps"
"""The same speed and bandwidth as texts."""
