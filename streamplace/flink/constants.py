"""Constants of measuring, moving and watching jobs whose values are judgement.

Each has its unit, the reason for its value, and the comparison behind it, if one is recorded.
Constants that one step was measured for, or that follow from Flink, are beside that step.
`streamplace.io.ledger.NOISE` is the difference between runs of one layout.
"""

MIN_GAIN = 0.05
"""Minimum expected gain of a move by a watch, relative to the best measured rate.

Judgement: more than runs of one layout differ by (3 %, measured), because a move stops the job.
"""
CLEAR_GAIN = 0.217
"""Minimum predicted relative gain of pins over a layout that Flink makes by itself, and of a layout
that no trial can confirm at the present rate.

Measured: errors of the ratio of two predictions are at most 17 % in nine of ten pairs
(docs/results/evidence.md).
"""
HORIZON_SECONDS = 3600.0
"""Time within which a try must gain more work than stopping the job costs; judgement."""
RATIO_ERROR = 0.43
"""Error of the ratio of two predictions of a job, relative to the error of one; both of logarithms.

Measured: `CLEAR_GAIN`, and intervals from 0.63 to 1.58 times the prediction.
tests/flink/test_improving.py applies it to recorded tries.
"""
LAG_SECONDS = 10.0
"""Backlogs that are read in less time are no lag: Flink fetches counts every ten seconds."""
CATCH_UP_SECONDS = 600.0
"""Time in which a late job should catch up; judgement: the move delays it by a minute or two."""
HIDDEN_RATIO = 1.2
"""Assumed ratio of arriving to emitted tuples of sources that are held back.

Judgement: a layout for exactly the emitted rate would hold them back again.
"""
MAX_AGE_SECONDS = 900.0
"""Age at which a measurement is repeated.

Judgement: a measurement takes a minute or two. The rate of a job that keeps up does not show
whether its capacity has decreased.
"""
CHECK_SECONDS = 1.0
"""Pause between two checks of the health of a watched job; judgement."""
BACKOFF_SECONDS = 300.0
"""Half of the pause of a watch after a move without gain; each further one doubles it.

Judgement: two days of load with models that are wrong by factors of three took at most four returns
(tests/flink/test_watch_rounds.py).
"""
DAY_SECONDS = 86_400.0
"""Maximum of that pause, and the time for which trials count; judgement: loads repeat daily."""
FAULT_SECONDS = 120.0
"""Time for which failed requests are repeated, and after which a program that did not fit is
checked again; judgement: another JobManager may become the leader in that time."""
RESUME_PAUSE_SECONDS = 30.0
"""Maximum pause between two tries to finish a move; judgement: each failed one uses up an id."""
MAX_REPEATS = 8
"""Maximum number of earlier rates of a layout in the interval of a watch; judgement."""
MAX_SIZES = 8
"""Maximum number of numbers of TaskManagers that a policy chooses among.

Judgement: with K of them, it may cost 2K - 1 times the best; fewer mean larger steps.
"""
VARIANTS = 8
"""Number of samples of the layouts that Flink may choose; judgement."""
COUNT_ERRORS = 3.0
"""Maximum difference of equal counts, as a multiple of the root of their number; judgement."""
RATE_ERRORS = 2.0
"""Standard errors of a rate, or of its slope, up to which a difference is noise; judgement."""
BUSY_SHARE, MIN_CAUSE = 0.8, 0.2
"""Share of the time for which a subtask that limits a job is busy, and minimum share of a cause;
judgement, tested with a job for each cause (tests/flink/test_hot.py)."""
MIN_BUSY = 0.1
"""Cores of a thread that is busy enough for comparisons.

Judgement: threads of Java itself use a few hundredths.
"""
INDEXES = 32
"""Number of indexes of a TaskManager, and so of spread groups on it at a time; judgement: each is
an external resource in its configuration."""
MAX_LIMITS = 256
"""Maximum number of limits of a TaskManager in all layers; judgement, as for `INDEXES`. One layer
is always offered."""
