"""Constants by which Flink's jobs are measured, moved and watched, and that are judgement.

Each has its unit, the reason for its value, and what it was compared with; where no comparison is
named, none is recorded. What was measured for one step alone, or follows from Flink, stands beside
that step. How much runs of one layout differ is `streamplace.io.ledger.NOISE`.
"""

WORTHWHILE = 0.05
"""Least expected gain for which a watch moves a job, relative to the best measured rate.

Judgement: more than runs of one layout differ by (3 %, measured), because a move stops the job.
"""
CLEAR = 0.217
"""Least predicted relative gain of a layout that no trial can confirm before more is offered, and
of pins over a layout that Flink makes by itself.

Measured: errors of the ratio of two predictions are at most 17 % in nine of ten pairs
(docs/results/evidence.md).
"""
HORIZON_SECONDS = 3600.0
"""Time within which a try must gain more work than it costs by stopping the job; judgement."""
RATIO_ERROR = 0.43
"""Error of the ratio of two predictions of a job, as a part of that of one; both by logarithms.

Measured: `CLEAR`, and intervals from 0.63 to 1.58 times the prediction. What it leaves of recorded
tries is in tests/flink/test_improving.py.
"""
LAG_SECONDS = 10.0
"""A backlog that is read in less time is no lag: Flink fetches counts every ten seconds by default.
"""
CATCH_UP_SECONDS = 600.0
"""Time in which a job that is late should be on time again; judgement: a start elsewhere makes it a
minute or two later first."""
HIDDEN = 1.2
"""Ratio of what arrives for held-back sources to what they emit, if that is unknown.

Judgement: a job that is moved for exactly what it emits would be held back again.
"""
OLD_SECONDS = 900.0
"""Age from which a measurement is repeated.

Judgement: a measurement takes a minute or two. While a job keeps up, its rate does not show whether
it could carry less than before.
"""
BACKOFF_SECONDS = 300.0
"""Half of the pause of a watch after a move that brought nothing; each further one doubles it.

Judgement: two days of load with models that are wrong by factors of three took at most four returns
(tests/flink/test_watch_rounds.py).
"""
DAY_SECONDS = 86_400.0
"""Longest such pause, and the time for which trials count; judgement: loads repeat every day."""
FAULT_SECONDS = 120.0
"""Time for which requests that fail are repeated, and after which a program that did not fit
is checked again; judgement: another JobManager may begin to lead meanwhile."""
RESUME_PAUSE_SECONDS = 30.0
"""Longest pause between two tries to finish a move; judgement: each that fails takes an id."""
MOST_REPEATS = 8
"""Most earlier rates of a layout that the interval of a watch holds; judgement."""
MOST_SIZES = 8
"""Most numbers of TaskManagers among which a policy chooses.

Judgement: of K, it may cost 2K - 1 times the best; fewer leave larger steps.
"""
VARIANTS = 8
"""Number of samples that stand for all layouts which Flink may choose; judgement."""
COUNT_ERRORS = 3.0
"""Largest difference of counts that agree, as a multiple of the root of their number; judgement."""
RATE_ERRORS = 2.0
"""Standard errors of a rate, or of its slope, within which a difference is noise; judgement."""
BUSY, PART = 0.8, 0.2
"""Part of the time for which a subtask is busy that limits a job, and least part of a cause in it;
judgement, tested on a job for each cause (tests/flink/test_hot.py)."""
LEAST_BUSY = 0.1
"""Cores of a thread that is busy enough to compare others with.

Judgement: threads of Java itself use a few hundredths.
"""
INDEXES = 32
"""Number of indexes that a TaskManager offers, and so of spread groups on it at a time; judgement:
each is an external resource in its configuration."""
MOST_LIMITS = 256
"""Maximum number of limits of all layers that a TaskManager offers; judgement, as for `INDEXES`.
One layer is always offered."""
