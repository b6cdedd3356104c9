"""Rounds of a watch: when a job is measured, tried elsewhere, and returns, also over whole days.

And decisions by tables: where a job goes, what lag is, and what guards forbid.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import pi, sin
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flink import layout_option
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import fill_disk

from streamplace.control.policy import POLICIES
from streamplace.errors import SettingError
from streamplace.flink.decide.improving import Trial
from streamplace.flink.layout import Layout
from streamplace.flink.move.journal import MoveUnderWay
from streamplace.flink.move.savepoints import CheckpointTotals
from streamplace.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.flink.store import Holder, Store, StoreError, utc_now
from streamplace.flink.watch import rounds as passing
from streamplace.flink.watch.deciding import (
    Guards,
    JobModel,
    JobSample,
    LayoutOption,
    RateJudge,
    TriedLayout,
    choose,
    compared,
    known_options,
    with_trial,
)
from streamplace.flink.watch.log import JobWatched, WatchLog
from streamplace.flink.watch.rounds import JobRounds
from streamplace.flink.watches import MOVED, WatchDecision, WatchRound

DEVICES = ("dev-0", "dev-1", "dev-2")
ONE, TWO, THREE = "dev-0 dev-0 dev-0", "dev-0 dev-0 dev-1", "dev-0 dev-1 dev-2"
OTHER = "dev-0 dev-1 dev-1"
"""Names of layouts: the devices of the subtasks of the only operator. Two are on two devices."""
CARRIES = {ONE: 100.0, TWO: 200.0, THREE: 300.0}
NOON = datetime(2026, 5, 4, 12, 30)
DAY = 86_400.0


@dataclass
class Scene:
    """A job of one operator that is watched: its cluster, what measures it, and what moves it."""

    log: WatchLog
    carries: Mapping[str, float] = field(default_factory=lambda: CARRIES)
    offered: float | Callable[[float], float] = 50.0  # tuples/s that arrive
    # Layout → what the model predicts, relative to what it carries. While the job is held back,
    # predictions are scaled to its rate, and the model may contradict that.
    factors: Mapping[str, float] = field(default_factory=dict)
    reports: bool = False  # whether its sources report what waits for them
    takes: float = 0.0  # seconds that a measurement takes
    # Raised by the next looks; then by measurements and moves, for as long as they are there.
    broken: list[Exception] = field(default_factory=list)
    unmeasured: Exception | None = None
    unmoved: Exception | None = None
    ends: str = MOVED  # what comes of its moves
    # Layout → what it sustains, as a multiple of what its sources read; 1 for the others.
    lasting: Mapping[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    where: str = ONE
    now: float = 0.0
    backlog: float = 0.0
    number: int = 0
    measured: int = 0
    visited: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def job(self):
        """Its id, which changes with every move."""
        return f"job{self.number}"

    @property
    def arriving(self):
        """Tuples/s that arrive now."""
        return self.offered(self.now) if callable(self.offered) else self.offered

    @property
    def rate(self):
        """Tuples/s that its sources emit."""
        carried = self.carries[self.where]
        return carried if self.backlog > 0 else min(carried, self.arriving)

    def passes_time(self, seconds, *, runs=True):
        """Let time pass, in which the job runs or not."""
        carried = self.carries[self.where] if runs else 0.0
        self.backlog = max(0.0, self.backlog + (self.arriving - carried) * seconds)
        self.now += seconds

    def sample(self, _, job, at):
        """Read the metrics of the job."""
        if self.broken:
            raise self.broken.pop(0)
        usual: dict[str, Any] = {
            "is_limited": self.rate < self.arriving or self.backlog > 0,
            "backlog": self.backlog if self.reports else None,
            "layout": Layout({"map": self.where.split()}),
            "checkpoints": CheckpointTotals(5, 0),
            "managers": frozenset(DEVICES),
        }
        return JobSample(at, job, self.rate, **(usual | self.facts))

    def model(self, _, __, trials):
        """Measure the job, and predict its layouts."""
        is_limited = self.rate < self.arriving or self.backlog > 0
        self.measured += 1
        self.passes_time(self.takes)
        if self.unmeasured is not None:
            raise self.unmeasured
        here = self.factors.get(self.where, 1.0) if is_limited else 1.0
        is_known = abs(here - 1) <= 0.2
        options = dict[str, LayoutOption]()
        where = Layout({"map": self.where.split()})
        for name, rate in self.carries.items():
            value = self.factors.get(name, 1.0) / here * rate
            option = layout_option(name.split(), value, is_known=is_known)
            options[name] = replace(option, moves=option.layout.number_moved_from(where))
        present = options.pop(self.where)
        lasting = self.lasting.get(self.where, 1.0)
        return JobModel(
            present, tuple(options.values()), (1, 2, 3), "the CPU of dev-0", lasting=lasting
        )

    def carry_out(self, job, here, choice):
        """Move the job, or fail."""
        assert choice.target is not None
        if self.unmoved is not None:
            raise self.unmoved
        self.visited.append(" ".join(choice.target.layout["map"]))
        has_moved = self.ends == MOVED
        after = f"job{self.number + has_moved}"
        decision = WatchDecision(
            utc_now(),
            "return" if choice.returns else "move",
            job,
            after,
            choice.target.layout.to_json(),
            (here.machines, choice.target.machines),
            choice.words,
        )
        self.log.end(self.log.begin(decision), self.ends, "", after)
        self.passes_time(2.0, runs=False)
        if has_moved:
            self.number, self.where = self.number + 1, self.visited[-1]
        return after

    def note_rate(self, decision, rate, is_limited):
        """Write what was measured after a move."""
        self.log.note_rate(decision, rate)

    def rounds(self, policy="ds2", acts=True, every=60.0, **guards):
        """Rounds of one process."""
        return JobRounds(
            Rest("http://localhost:1"),
            self.log,
            RateJudge(POLICIES[policy], every),
            Guards(**guards),
            self.model,
            self if acts else None,  # type: ignore[arg-type]
            lambda: self.now,
            lambda: NOON + timedelta(seconds=self.now),
        )

    def passes(self, rounds, number=1, **facts):
        """Pass rounds a minute apart, after some facts have changed; return what they told."""
        for name, value in facts.items():
            setattr(self, name, value)
        before = len(self.messages)
        for _ in range(number):
            assert rounds.is_due
            rounds.pass_round(self.job)
            self.passes_time(rounds.policy.seconds)
        return self.messages[before:]

    @property
    def seen(self):
        """Rounds that were recorded."""
        return self.log.rounds(9999)

    @property
    def decisions(self):
        """Decisions that were recorded."""
        return [*self.log.decisions.values()]


def scene_of(monkeypatch):
    """A job that nobody has watched yet."""
    messages: list[str] = []
    made = Scene(
        WatchLog.claimed(Store.usual(), "job0", "shop", messages.append), messages=messages
    )
    monkeypatch.setattr(passing, "sample_of", made.sample)
    return made


@pytest.fixture
def scene(monkeypatch):
    """A job that nobody has watched yet."""
    return scene_of(monkeypatch)


def day(low, high):
    """Rate over a day, the lowest at its beginning."""
    return lambda now: (low + high) / 2 - (high - low) / 2 * sin(pi / 2 + 2 * pi * now / DAY)


def test_a_job_goes_up_when_it_falls_behind_and_down_when_less_carries_its_rate(scene):
    rounds = scene.rounds(least_seconds=0.0)
    told = scene.passes(rounds, offered=104.0)
    assert told[0] == (
        "12:30:00  100 tuples/s on 1 TaskManager, held back; it is measured before the next round"
    )
    assert "; it carries 100 tuples/s (measured); the job is moved: it falls behind" in told[1]
    assert "keeps up, stays" in scene.passes(rounds, offered=150.0, backlog=0.0)[-1]
    told = scene.passes(rounds, offered=50.0)
    assert scene.visited == [TWO, ONE]
    assert "dev-0 carried 100 tuples/s (measured), which saves 1 TaskManager" in told[-1]


def test_a_try_that_carries_less_ends_at_once_and_is_remembered(scene):
    """The model promises twice of what the other layout carries; then the pause doubles."""
    carries = {ONE: 100.0, OTHER: 90.0}
    rounds = scene.rounds()
    scene.passes(rounds, 3, offered=300.0, carries=carries, factors={OTHER: 2.0}, backlog=1e9)
    assert (scene.visited, scene.where) == ([OTHER, ONE], ONE)
    assert [(one.kind, one.measured) for one in scene.decisions] == [
        ("move", 90.0),
        ("return", 100.0),
    ]
    assert "the job returns: only 90 tuples/s are carried here; dev-0 carried 100" in "".join(
        scene.messages
    )
    scene.passes(rounds, 60)
    assert scene.visited == [OTHER, ONE]
    assert scene.messages[-1].endswith("no known layout is expected to carry more")
    scene.passes(scene.rounds(), 10)  # another process
    assert scene.visited == [OTHER, ONE]


def test_a_try_in_which_some_subtasks_fall_behind_ends_though_the_others_read_more(scene):
    """A backlog is read faster there, but unevenly: the last subtask would never be done."""
    scene.carries, scene.factors, scene.lasting = {ONE: 100.0, OTHER: 120.0}, {}, {OTHER: 0.5}
    scene.passes(scene.rounds(), 3, offered=300.0, backlog=1e9)
    assert (scene.visited, scene.where) == ([OTHER, ONE], ONE)
    assert [one.measured for one in scene.decisions] == [60.0, 100.0]


@pytest.mark.parametrize("kind", [SettingError, MoveUnderWay])
def test_a_move_that_could_not_be_begun_is_tried_again_after_the_least_time(scene, kind):
    """As when the program does not fit, or another command moves the job."""
    rounds = scene.rounds(least_seconds=120.0)
    told = scene.passes(rounds, 2, offered=104.0, unmoved=kind("not now"))
    assert told[2] == "the job is not moved: not now"
    assert told[3].endswith("but the next move must wait for 1 min")
    scene.passes(rounds, unmoved=None)
    assert scene.visited == [TWO]


@pytest.mark.parametrize(
    ("policy", "reports", "wrong"),
    [
        ("work-function", True, 0.3),
        pytest.param("work-function", False, 3.0, marks=pytest.mark.slow),
        pytest.param("work-function", True, 1.0, marks=pytest.mark.slow),
        pytest.param("ds2", True, 3.0, marks=pytest.mark.slow),
        ("threshold", False, 0.3),
    ],
)
def test_two_days_with_a_wrong_model(scene, policy, reports, wrong):
    """The job keeps up with the day nearly all the time, and few moves suffice."""
    factors = {OTHER: wrong, TWO: 1 / wrong, THREE: wrong}
    scene.carries = {**CARRIES, OTHER: 120.0}
    scene.factors, scene.reports, scene.offered = factors, reports, day(40.0, 270.0)
    rounds = scene.rounds(policy, every=300.0)
    behind = 0
    while scene.now < 2 * DAY:
        scene.passes(rounds)
        behind += scene.arriving > 1.03 * scene.carries[scene.where]
    assert behind * 300.0 <= 0.06 * scene.now
    assert len(scene.visited) <= 20
    returns = [one for one in scene.decisions if one.kind == "return"]
    assert len(returns) <= 4


@settings(
    max_examples=settings().max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(st.sampled_from([TWO, OTHER, THREE]), st.floats(20, 500), min_size=1),
    st.dictionaries(st.sampled_from([ONE, TWO, OTHER, THREE]), st.floats(0.2, 5.0)),
    st.booleans(),
    st.floats(30, 600),
)
def test_a_job_that_falls_behind_ends_in_the_best_layout_that_was_measured(
    others, factors, reports, offered
):
    """However wrong the model is."""
    with pytest.MonkeyPatch.context() as patch:
        Store.usual().path.unlink(missing_ok=True)
        scene = scene_of(patch)
        scene.carries, scene.factors, scene.reports = {ONE: 100.0, **others}, factors, reports
        scene.backlog = 1e7
        scene.passes(scene.rounds(least_seconds=0.0), 60, offered=offered)
        known = [scene.carries[name] for name in (ONE, *scene.visited)]
        rate = scene.carries[scene.where]
        assert rate >= min(offered, 0.97 * max(known))


def test_a_job_is_measured_when_something_has_changed_and_now_and_then(scene):
    """When it begins to fall behind, another layout is found, or a quarter of an hour is over."""
    rounds = scene.rounds("static", acts=False)
    scene.passes(rounds, 10)
    assert scene.measured == 1
    scene.passes(rounds, 10, offered=104.0)
    assert scene.measured == 2
    scene.passes(rounds, where=THREE, backlog=0.0)
    assert scene.measured == 3
    scene.passes(rounds, 14)
    assert scene.measured == 3
    told = scene.passes(rounds, takes=130.0)
    assert scene.measured == 4
    assert "it is measured before the next round" in told[0]


def test_a_job_that_cannot_be_measured_is_tried_again_now_and_then(scene):
    """The reason is told once; rounds go on, and another layout is measured at once."""
    rounds = scene.rounds()
    told = scene.passes(rounds, 60, unmeasured=FlinkError("no metrics"))
    assert scene.measured == 4
    assert [line for line in told if "no metrics" in line] == [
        "note: the job is not measured: no metrics"
    ]
    assert told[-1].endswith("50 tuples/s on 1 TaskManager; keeps up, stays")
    scene.passes(rounds, where=TWO)
    assert scene.measured == 5


def test_what_arrived_before_is_remembered_by_the_next_process(scene, tmp_path):
    """The move comes in the same round as if the watch had not been killed."""

    def move_of(kill_at):
        store = Store(tmp_path / f"{kill_at}.sqlite")
        scene.log = WatchLog.claimed(store, "job0", "shop", scene.messages.append)
        scene.now, scene.backlog = 0.0, 0.0
        rounds = scene.rounds("work-function", acts=False)
        for number in range(100):
            if number == kill_at:
                rounds = scene.rounds("work-function", acts=False)
            if "a move would pay" in scene.passes(rounds, offered=104.0, reports=True)[-1]:
                return number
        raise AssertionError("never")

    whole = move_of(None)
    assert 2 <= whole <= 20
    assert move_of(1) == whole
    assert move_of(whole) - whole in (0, 1)  # one look tells nothing of lag


def test_checkpoints_fail_until_one_completes(scene):
    rounds = scene.rounds()
    scene.passes(rounds)
    told = scene.passes(rounds, 2, offered=150.0, facts={"checkpoints": CheckpointTotals(5, 2)})
    assert told[-1].endswith("; but its checkpoints fail")
    assert scene.visited == []
    scene.passes(rounds, facts={"checkpoints": CheckpointTotals(6, 2)})
    assert scene.visited == [TWO]


def test_savings_keep_the_least_time_also_over_processes(scene):
    """A job that falls behind waits for nothing."""
    rounds = scene.rounds(least_seconds=200.0)
    scene.passes(rounds, offered=150.0)
    scene.passes(rounds, offered=250.0)
    assert scene.visited == [TWO, THREE]
    scene.passes(rounds, 2, offered=50.0, backlog=0.0)
    assert "the next move must wait for 1 min 1" in scene.messages[-1]
    scene.passes(scene.rounds(least_seconds=200.0))
    assert "but the next move must wait" in scene.messages[-1]
    scene.passes(rounds, 2)
    assert scene.visited == [TWO, THREE, ONE]


@pytest.mark.parametrize("act", ["pass", "move"])
def test_a_watch_that_another_process_has_taken_over_ends(scene, monkeypatch, act):
    """It moves nothing any more, and leaves the watch to that process, of another machine."""
    rounds = scene.rounds()
    scene.passes(rounds)
    other = Holder.current().model_copy(update={"host": "elsewhere"})

    def take_over(*_):
        with monkeypatch.context() as patch:
            patch.setattr(Holder, "current", lambda: other)
            patch.setattr(Holder, "runs", False)
            WatchLog.claimed(scene.log.store, "job0", "shop", print)

    if act == "move":
        monkeypatch.setattr(WatchLog, "add", take_over)
    else:
        take_over()
    with pytest.raises(JobWatched, match="another command has watched the job since 20"):
        scene.passes(rounds, offered=150.0)
    assert scene.decisions == []
    monkeypatch.setattr(Holder, "runs", True)
    with pytest.raises(JobWatched, match=r"has been watched by process \d+ of elsewhere since"):
        WatchLog.claimed(scene.log.store, "job0", "shop", print)


def test_a_round_without_an_answer_is_no_round(scene):
    rounds = scene.rounds()
    with pytest.raises(NoAnswer):
        scene.passes(rounds, broken=[NoAnswer("gone")])
    assert "stays" in scene.passes(rounds)[-1]


def test_a_full_disk_stops_moves_and_not_the_watch(scene):
    """It is told once, and rounds are recorded when there is room again."""
    rounds = scene.rounds()
    with pytest.MonkeyPatch.context() as patch:
        scene.passes(rounds)
        fill_disk(patch)
        scene.passes(rounds, 200)  # fill what is left of the last page
        assert [line for line in scene.messages if "records no rounds" in line] == [
            next(line for line in scene.messages if "database or disk is full" in line)
        ]
        full = StoreError("store.sqlite cannot be used: database or disk is full")
        told = scene.passes(rounds, 2, offered=150.0, unmoved=full)
        assert f"the job is not moved: {full}" in told
    assert scene.passes(rounds, offered=50.0, backlog=0.0)[-1].endswith(scene.seen[-1].words)


def tried(one, rate, *, is_limited=True):
    """A layout in which a rate was measured."""
    return one.after(Trial("", one.layout, rate, is_limited=is_limited))


def seen(rate, **facts):
    """A round of a job that keeps up."""
    usual = {
        "arriving": rate,
        "is_limited": False,
        "backlog": 0.0,
        "machines": 2,
        "falls_behind": False,
    }
    return WatchRound("", 0.0, "job", rate, **(usual | facts))


BEHIND: dict[str, Any] = {"is_limited": True, "falls_behind": True, "shows_capacity": True}
RATES = {"aaa": 100.0, "abb": 200.0, "abc": 300.0, "aab": 220.0}
A, AB, ABC, AAB = (layout_option(devices, rate) for devices, rate in RATES.items())


@pytest.mark.parametrize(
    ("rate", "facts", "here", "most", "is_trial", "target", "words"),
    [
        # a job that keeps up is not moved for more rate, whatever the policy expects
        (190, {}, AB, 3, False, None, "keeps up, stays"),
        (190, {"is_limited": True, "is_known": True}, AB, 3, False, None, "keeps up, stays"),
        (50, {}, AB, 2, False, None, "keeps up, stays"),
        # it leaves TaskManagers if the rest surely carry what arrives
        (85, {}, AB, 1, False, A, "a should carry 100 tuples/s (90 to 110), which saves 1 Task"),
        (95, {}, AB, 1, False, None, "fewer TaskManagers may not carry the present rate"),
        (50, {"shows_capacity": True}, AB, 1, False, None, "it drains its backlog"),
        # one that falls behind goes where what arrives is surely carried: to as few as possible
        (200, BEHIND, tried(AB, 200), 3, False, ABC, "it falls behind at 240 tuples/s; a, b, c sh"),
        (200, BEHIND | {"kept": 100.0}, tried(AB, 200), 3, False, ABC, "it falls behind at 220 "),
        (200, BEHIND | {"is_known": True}, tried(AB, 200), 3, False, ABC, "falls behind at 200 "),
        # or where the most is expected, also on as many TaskManagers as now
        (205, BEHIND, tried(AB, 205), 2, False, AAB, "a, b should carry 220 tuples/s (198 to 242)"),
        (270, BEHIND, tried(AB, 270), 2, False, None, "the policy does not move it yet"),
        (270, BEHIND, tried(AB, 270), 3, False, ABC, "a, b, c should carry 300 tuples/s"),
        # what may be, but is not expected, moves nothing
        (290, BEHIND, tried(AB, 290), 3, False, None, "no known layout is expected to carry more"),
        # a try that carries less than the best measured layout ends there
        (150, BEHIND, tried(AB, 150), 2, True, tried(A, 160), "only 150 tuples/s are carried here"),
        (158, BEHIND, tried(AB, 158), 2, True, AAB, "a, b should carry 220 tuples/s"),
        (158, {}, tried(AB, 158), 2, True, None, "keeps up, stays"),
    ],
)  # fmt: skip
def test_a_job_goes_where_what_arrives_is_carried(rate, facts, here, most, is_trial, target, words):
    """Lag first, then the policy's number of TaskManagers, then what layouts carry."""
    first = target if target is not None and target.measured else A
    chosen = choose(here, [first, AAB, ABC], most, seen(rate, **facts), is_trial=is_trial)
    assert chosen.target == target
    assert words in chosen.words
    assert chosen.returns == (is_trial and target == first)


def test_a_model_that_contradicts_forbids_nothing():
    """Of layouts of which nothing is known, the usual order decides."""
    unknown = [layout_option("bba", 20.0, order=2), layout_option("baa", 10.0, order=0)]
    unknown = [replace(one, is_known=False) for one in unknown]
    chosen = choose(tried(AB, 100), unknown, 2, seen(100, **BEHIND), is_trial=False)
    assert chosen.target == unknown[1]
    assert chosen.words.endswith("the capacity of a, b is unknown, as the model is far off here")


def test_the_interval_of_a_layout_holds_what_its_repeats_differ_by():
    """As measured in a watch of 26 minutes; the last eight count besides the present one."""
    known: tuple[TriedLayout, ...] = ()
    for at, rate in enumerate([9000.0, 3401, 3554, 3615, 2880, 3130, 3237, 2847, 3300, 3400]):
        known = with_trial(known, Trial("", AB.layout, rate, is_limited=True), at)
    here, _ = known_options(AB, [], [trial for _, trial in known])
    assert here.carries == pytest.approx((0.97 * 2847, 3400.0, 1.03 * 3615))


def test_what_was_measured_replaces_what_was_predicted():
    """A layout in which the job did not run is none, and one that kept up may carry more."""
    trials = [
        Trial("", A.layout, 80.0, is_limited=True),
        Trial("", AB.layout, 250.0),
        Trial("", ABC.layout, 0.0, failure="too few slots"),
        Trial("", Layout({"map": ["c"] * 3}), 40.0, is_limited=True),
    ]
    here, others = known_options(AB, [A, ABC], trials)
    assert (here.carries, here.measured) == ((250.0, 250.0, 250.0), 250.0)
    assert [(one.devices, one.measured) for one in others] == [(["a"], 80.0), (["c"], 40.0)]
    assert others[0].carries == pytest.approx((77.6, 80.0, 82.4))


def sample(rate, backlog, **facts):
    """A job whose sources report what waits."""
    usual: dict[str, Any] = {"at": 0.0, "job": "job", "is_limited": True}
    rest: dict[str, Any] = {"layout": Layout(), "checkpoints": CheckpointTotals(0, 0)}
    return JobSample(rate=rate, backlog=backlog, managers=frozenset(), **rest, **(usual | facts))


@pytest.mark.parametrize(
    ("before", "now", "arriving", "falls_behind", "shows_capacity"),
    [
        (sample(60, 0), sample(80, 1200), 90.0, True, True),
        (sample(80, 0), sample(80, 120), 82.0, False, False),  # too little waits to be a lag
        (sample(80, 9000), sample(80, 8400), 70.0, False, True),  # drained: this is what it carries
        (sample(80, 9000), sample(80, 9060), 81.0, True, True),  # nearly two minutes late
        (sample(80, 9000), sample(80, 8940), 79.0, True, True),  # and so for hours
        (sample(80, 4000), sample(80, 3940), 79.0, False, True),  # in time
        (sample(80, None), sample(80, None), 80.0, True, True),  # only back-pressure tells
        (None, sample(80, 9000), 80.0, None, False),
        (sample(80, 0), sample(80, 9000, started=7.0), 80.0, None, False),
        (sample(80, 0), sample(80, 9000, job="next"), 80.0, None, False),
        (sample(80, None), sample(80, 9000), 80.0, None, False),
    ],
)
def test_lag_decides_where_sources_report_what_waits(
    before, now, arriving, falls_behind, shows_capacity
):
    """Their back-pressure decides nothing then; a restart, or other sources, tell nothing."""
    facts = compared(before, replace(now, at=60.0), 0.0, 60.0)
    assert (facts.arriving, facts.falls_behind) == (arriving, falls_behind)
    assert facts.shows_capacity == shows_capacity


def test_a_policy_remembers_a_whole_day_however_short_its_rounds_are():
    """Rounds that take longer are shown once for each interval; hours count as a quarter of one."""
    times: list[float] = []

    def chosen(seen):
        times.append(seen.time)
        return seen.level

    stays: Any = SimpleNamespace(choose=chosen)
    judge = RateJudge(lambda _: stays, 10.0)
    past = [replace(seen(50.0), time=10.0 * i) for i in range(9500)]
    for one in past:
        judge.remember(one)
    planned = {"level": 0, "capacity": (90.0,), "cost": (1.0,)}
    judge.choose(replace(past[-1], time=95_000.0, **planned))
    assert times[-1] - times[0] >= 86_400 + 900
    known = len(times)
    judge.choose(replace(past[-1], time=95_060.0, **planned))
    assert len(times) == known + 6
    judge.choose(replace(past[-1], time=105_060.0, **planned))
    assert len(times) == known + 6 + 90
