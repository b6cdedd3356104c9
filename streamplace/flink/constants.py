"""Constants of several steps of measuring, moving and watching jobs: unit, value and its reason.

Constants of a single step, measured for it or given by Flink, are in its module.
`streamplace.io.ledger.NOISE` is the difference between runs of one layout.
"""

MIN_GAIN = 0.05
"""Minimum expected gain of a move by a watch, relative to the best measured rate.

Judgement: more than the difference between runs of one layout (3 %, measured), because a move stops
the job.
"""
CLEAR_GAIN = 0.217
"""Minimum predicted relative gain of pins over a layout that Flink chooses, and of a layout that no
try can confirm at the present rate.

Measured: errors of the ratio of two predictions are at most 17 % in nine of ten pairs
(docs/results/evidence.md).
"""
HORIZON_SECONDS = 3600.0
"""Time in which the gain of a try must exceed the work that stopping the job costs; judgement."""
RATIO_ERROR = 0.43
"""Error of the ratio of two predictions of a job, relative to the error of one, in logarithms.

Measured: `CLEAR_GAIN`, and intervals from 0.63 to 1.58 times the prediction.
tests/flink/test_improving.py applies it to recorded tries.
"""
LAG_SECONDS = 10.0
"""Maximum time to drain a backlog that is no lag: Flink fetches counts every ten seconds."""
CATCH_UP_SECONDS = 600.0
"""Time in which a job with a lag should catch up; judgement: a move adds a minute or two to it."""
HIDDEN_RATIO = 1.2
"""Assumed ratio of arriving to emitted tuples of held-back sources.

Judgement: a layout for exactly the emitted rate would hold them back again.
"""
MAX_AGE_SECONDS = 900.0
"""Maximum age of a measurement before it is repeated.

Judgement: a measurement takes a minute or two. While a job keeps up, its rate does not show whether
its capacity has decreased.
"""
CHECK_SECONDS = 1.0
"""Pause between two checks of the health of a watched job; judgement."""
BACKOFF_SECONDS = 300.0
"""Half of the pause of a watch after a move without gain; each further such move doubles it.

Judgement: two days of load with models that are wrong by factors of three took at most four returns
(tests/flink/test_watch_rounds.py).
"""
DAY_SECONDS = 86_400.0
"""Maximum of that pause, and the time for which tries count; judgement: loads repeat daily."""
FAULT_SECONDS = 120.0
"""Time for which failed requests are repeated, and after which a program that did not fit is
checked again; judgement: another JobManager may become the leader in that time."""
RESUME_PAUSE_SECONDS = 30.0
"""Maximum pause between two attempts to finish a move; judgement: each failed one uses an id."""
MAX_REPEATS = 8
"""Maximum number of earlier rates of a layout in the interval of a watch; judgement."""
MAX_SIZES = 8
"""Maximum number of sizes, in TaskManagers, from which a policy chooses.

Judgement: with K sizes, it may cost 2K - 1 times the best; fewer sizes mean larger steps.
"""
VARIANTS = 8
"""Number of samples of the layouts that Flink may choose; judgement."""
COUNT_ERRORS = 3.0
"""Maximum difference of equal counts, as a multiple of the root of their number; judgement."""
RATE_ERRORS = 2.0
"""Maximum difference that is noise, in standard errors of a rate or of its slope; judgement."""
BUSY_SHARE, MIN_CAUSE = 0.8, 0.2
"""Minimum busy share of the time of a subtask that limits a job, and minimum share of a cause;
judgement, tested with a job for each cause (tests/flink/test_hot.py)."""
MIN_BUSY = 0.1
"""Minimum cores of a thread that is busy enough for comparisons.

Judgement: threads of Java itself use a few hundredths.
"""
INDEXES = 32
"""Number of indexes of a TaskManager, and so of spread groups on it at a time; judgement: each is
an external resource in its configuration."""
MAX_LIMITS = 256
"""Maximum number of limits of a TaskManager in all layers, except that one layer is always offered;
judgement, as for `INDEXES`."""
