"""Constants by which moves and watches decide, which several modules share or a user would ask for.

Each has its unit and the reason for its value: measured, or taste. What one step alone needs stands
beside that step. How much runs of one layout differ is `streamplace.io.ledger.NOISE`.
"""

WORTHWHILE = 0.05
"""Least gain, relative to the best measured rate, that a layout must be able to have to be tried.

Taste: more than runs of one layout differ by (3 %, measured), because a trial stops the job.
"""
CLEAR = 0.217
"""Least predicted relative gain of a layout that no trial can confirm before more is offered.

Measured: errors of the ratio of two predictions are at most 17 % in nine of ten pairs
(docs/evidence.md).
"""
UNLIKE = 0.83
"""Logarithm of how far a rate may be above its interval if all subtasks are elsewhere.

It counts by the share of the subtasks that are elsewhere than in the measured layout. Measured:
nine of ten jobs stayed below (benchmarks/recorded_runs.py: 13 jobs of this repository, none of
which needs it, and five of others that carried up to 3.8 times their predictions).
"""
LAG_SECONDS = 10.0
"""A backlog that is read in less time is no lag: Flink fetches counts every ten seconds by default.
"""
HIDDEN = 1.2
"""Ratio of what arrives for held-back sources to what they emit, if that is unknown (taste)."""
OLD_SECONDS = 900.0
"""Age from which a measurement is repeated (taste).

While a job keeps up, its rate does not show whether it could carry less than before.
"""
BACKOFF_SECONDS = 300.0
"""Half of the pause of a watch after a move that brought nothing; each further one doubles it
(taste)."""
DAY_SECONDS = 86_400.0
"""Longest such pause, and the time for which trials count (taste): loads repeat every day."""
