"""Trials and rounds: which layouts a job may have, and that it ends on the best measured one."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from math import exp, inf, log
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_flink import FakeFlink, failure, healthy, task_manager
from hypothesis import given
from hypothesis import strategies as st

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.flink.constants import CLEAR_GAIN
from streamplace.flink.cpu.charging import UNKNOWN
from streamplace.flink.decide import improving
from streamplace.flink.decide.candidates import Candidate, Question, candidate
from streamplace.flink.decide.improving import PRESENT, JobImprover, Proposal, Trial, gained_seconds
from streamplace.flink.deployment import deployment_of
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.ledger import user_runs
from streamplace.flink.measure.cluster import ASSUMED_CPU, Measurement
from streamplace.flink.measure.profile import UNMEASURED_PYTHON
from streamplace.flink.measure.source_lag import SourceFlow
from streamplace.flink.move.interruption import COLD_CPU, Interruptions
from streamplace.flink.move.journal import MovePlan
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.savepoints import EndedByOthers
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import FlinkMoved, Undecided
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.store import Store
from streamplace.flink.watch.modelling import JobModeller, limit_of
from streamplace.io.ledger import NOISE
from streamplace.model.graph import CONSISTENCY_ERROR, CPU_OF
from streamplace.model.prediction_intervals import PredictionErrors, RateInterval
from streamplace.placers.registry import Budget

START = "here"
COLD = COLD_CPU[1]
RECORDED = Path(__file__).parents[2] / "docs/assets/against-flink.jsonl"


def at(device):
    """Layout of a job whose two operators are one task."""
    return Layout({"src": [device], "out": [device]})


@dataclass
class World:
    """A job of one task: what each layout really carries, and what the model says of it.

    It stands for the cluster, for what moves the job, and for what measures it.
    """

    carries: Mapping[str, float]
    factors: Mapping[str, float] = field(default_factory=dict)  # predicted over real rate
    fails: Mapping[str, Exception] = field(default_factory=dict)  # layout → why it does not run
    offered: float = inf
    asked: float | None = None
    is_contradicted: bool = False
    unmeasured: Mapping[str, Exception] = field(default_factory=dict)
    interrupted: int = -1  # number of the step at which Ctrl-C is pressed; -1 for never
    ends: str = ""  # layout in which the job finishes
    where: str = START
    number: int = 0
    steps: int = 0
    visited: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)  # layouts in which it was measured
    later: dict[str, float] = field(default_factory=dict)  # layout → what it carries from then on
    asked_for: list[str] = field(default_factory=list)
    restarts: str = ""  # layout in which Flink restarts it once after it was moved there
    dies: str = ""  # layout in which it fails again and again after it was moved there
    is_cancelled: bool = False  # whether another user cancels it there
    settings: MoveSettings = field(default_factory=MoveSettings)

    @property
    def job(self):
        """Its id, which changes with every move."""
        return f"job{self.number}"

    @property
    def has_finished(self):
        """Whether it has ended."""
        return self.where == self.ends

    @property
    def rate(self):
        """What its sources emit now."""
        carries = {**self.carries, **(self.later if self.visited else {})}
        return min(self.offered, carries[self.where])

    def step(self):
        """Do something for a while, in which the user may press Ctrl-C."""
        self.steps += 1
        if self.steps - 1 == self.interrupted:
            raise KeyboardInterrupt

    def for_trials(self):
        """Rates are no condition here."""
        return self

    def plan(self, job, vectors):
        """Whatever is placed fits."""
        assert job == self.job
        self.step()
        return MovePlan(job=job, before=at(self.where), after=Layout(vectors))

    def run(self, plan):
        """Move the job, or start it again where it was, as if that is interrupted."""
        (target,) = plan.after["out"]
        self.step()
        self.number += 1
        self.visited.append(target)
        if target in self.fails:
            raise self.fails[target]
        before, self.where = self.where, target
        try:
            self.step()
        except KeyboardInterrupt:
            self.number, self.where = self.number + 1, before
            raise
        return FlinkMoved(self.job, 2.0, f"savepoint-{self.number}")

    def propose(self, job, _=(), trials=()):
        """Measure the job, and predict its layouts."""
        assert job == self.job
        self.step()
        if self.has_finished or self.where in (self.restarts, self.dies):
            raise FlinkError("the job does not run")
        if self.where in self.unmeasured and self.number:
            raise self.unmeasured[self.where]
        ipt = (0.1 if self.is_contradicted else 1.0) * 1e6
        operators = [Operator("src -> out", ipt=ipt, rate=self.rate)]
        graph = StreamGraph.of("job", operators, attributes={"mips": 100.0})
        devices = Cluster.of([Device(name, mips=rate) for name, rate in self.carries.items()])
        measured = Measurement(
            graph, devices, SourceFlow(self.rate, is_limited=self.rate < self.offered)
        )
        question = Question(measured, at(self.where), {}, True, self.asked)
        others = [self.candidate(name) for name in self.carries if name != self.where]
        present = Trial.present(question)
        self.known.append(self.where)
        expected = Interruptions(stop=0.0, start=0.0)
        return Proposal(job, question, tuple(others), expected, (*trials, present), present)

    def await_running(self, job, _):
        """Wait for a job that Flink restarts."""
        assert job == self.job
        self.restarts = ""
        if self.where == self.dies:
            raise FlinkError("the job has no memory left")

    def restart(self, job, layout):
        """Start a job that does not run from its last checkpoint."""
        assert job == self.job
        assert self.where == self.dies
        return self.run(MovePlan(job=job, before=at(self.where), after=layout))

    def state(self, job):
        """State of a job."""
        if self.has_finished or job != self.job:
            return "FINISHED"
        return "RESTARTING" if self.where == self.dies else "RUNNING"

    def candidate(self, name):
        """What the model says of a layout, with an error of 10 %."""
        rate = self.factors.get(name, 1.0) * self.carries[name]
        return Candidate(name, at(name), RateInterval(0.9 * rate, rate, 1.1 * rate))

    def improver(self, **facts):
        """Tries layouts in this world."""
        rest = SimpleNamespace(world=self)
        rest.state = self.state
        rest.wait_running = self.await_running
        engine: Any = SimpleNamespace(rest=rest)
        return InWorld(engine, cast("FlinkMove", self), tell=self.told.append, **facts)

    def improved(self, **facts):
        """Try layouts, beginning where the job is."""
        improver = self.improver(**{"agrees": self.agrees, **facts})
        return improver.run(improver.propose(self.job))

    def agrees(self, question):
        """Agree to every trial."""
        self.step()
        self.asked_for.append(question)
        return bool(question)


class InWorld(JobImprover):
    """Measures and predicts in the world that it moves a job of."""

    def propose(self, *given):
        """What the world proposes."""
        return cast("World", self.move).propose(*given)

    def _present_layout(self, job):
        return at(cast("World", self.move).where)


@pytest.fixture(autouse=True)
def _in_the_world(monkeypatch):
    """What Flink tells of a moved job is that of the world behind it."""

    def states(rest, _):
        return {rest.world.job: rest.state(rest.world.job)}

    def refuse_ended(rest, _):
        if rest.world.is_cancelled:
            raise EndedByOthers("the job was cancelled by another user")

    nothing = SimpleNamespace(readings=[])
    monkeypatch.setattr(improving, "SentReadings", lambda *_: nullcontext(nothing))
    monkeypatch.setattr(improving, "live_states", states)
    monkeypatch.setattr(improving, "refuse_ended", refuse_ended)
    monkeypatch.setattr(
        improving, "stopped_with", lambda rest, job: None if job == rest.world.job else "savepoint"
    )


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(10, 1000), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.2, 5.0)),
    st.sets(st.sampled_from("abcdef")),
    st.integers(0, 4),
)
def test_a_job_ends_in_the_best_layout_that_was_measured(others, factors, failing, tries):
    """However wrong the model is, wherever it does not run, and never below where it began."""
    fails = dict.fromkeys(failing, FlinkError("too few slots; returned"))
    world = World({START: 100.0, **others}, factors, fails)
    improved = world.improved(tries=tries)
    measured = [trial.rate for trial in improved.trials]
    assert improved.job == world.job
    assert improved.where.rate == world.rate
    assert world.rate >= 0.97 * max(measured)
    assert len(measured) <= 1 + tries
    assert len(world.visited) <= len(measured)  # at most one move back


def test_a_job_that_flink_restarts_in_a_layout_is_measured_once_it_runs():
    """A slow TaskManager may lose its first connections."""
    world = World({START: 100.0, "a": 150.0}, restarts="a")
    assert world.improved().where.rate == 150.0


def test_of_layouts_that_nothing_is_known_of_all_are_tried():
    """The model contradicts what was measured, so its predictions exclude nothing."""
    carries = {START: 100.0, "a": 50.0, "b": 300.0, "c": 90.0}
    world = World(carries, dict.fromkeys("abc", 0.01), is_contradicted=True)
    assert world.improved(tries=3).where.name == "b"
    assert {*world.visited[:3]} == {*"abc"}
    assert world.visited[3:] == ["b"]


def test_a_layout_whose_interval_is_below_the_best_rate_is_tried_only_for_a_reason():
    """Predictions of the job were far off, and that is said."""
    carries = {START: 100.0, "a": 130.0, "b": 180.0}
    world = World(carries, {"a": 1.0, "b": 0.5})
    assert world.improved().where.name == "a"
    world = World(carries, {"a": 3.0, "b": 0.5})
    assert world.improved().where.name == "b"
    (told,) = [asked for asked in world.asked_for if asked.startswith("try b")]
    assert "tried because predictions of this job were off by 3.0 times" in told


def test_a_profile_by_which_the_present_layout_carries_nothing_is_no_error_of_the_command():
    """All layouts may be as good then."""
    made = World({START: 100.0, "a": 90.0}).propose("job0")
    graph = replace(made.measured.graph, attributes={"mips": 100.0, CONSISTENCY_ERROR: -1.0})
    measured = replace(made.measured, graph=graph, flow=SourceFlow(0.0))
    doubtful = replace(made, question=replace(made.question, measured=measured))
    assert doubtful.worst_error > 3
    assert doubtful.gain(made.candidates[0]) > 0


@pytest.mark.parametrize(
    ("predicted", "there", "line", "is_tried"),
    [
        (1.05, 2.0, "", False),  # pins must be worth more than Flink's own layout
        (1.3, 2.0, "", True),
        (1.05, 2.0, "mode: SLOTS", True),
        (1.05, 200.0, "mode: SLOTS", False),  # it stops the job for longer than it gains in an hour
        (0.8, 2.0, "mode: SLOTS", False),
    ],
)
def test_a_try_must_gain_more_within_an_hour_than_it_costs(predicted, there, line, is_tried):
    made = World({START: 100.0}).propose("job0")
    value = 100.0 * predicted
    other = Candidate("a", at(START), RateInterval(0.7 * value, value, 1.4 * value), line=line)
    present = replace(made.where, is_pinned=False)
    made = replace(made, interruptions=Interruptions(there, 0.0), trials=(present,), where=present)
    made = replace(made, candidates=(replace(other, layout=at("b")),))
    assert (made.target is not None) == is_tried


def recorded_trials():
    """The trials of each recorded move, from the present layout on."""
    for row in map(json.loads, RECORDED.read_text().splitlines()):
        if trials := ((row.get("answer") or {}).get("decision") or {}).get("trials"):
            yield trials


def test_the_recorded_interruptions_by_later_moves_are_half_of_the_one_before():
    pairs = [
        (Interruptions(0.0, 0.0).on([1.0], last=before), after)
        for trials in recorded_trials()
        for before, after in pairwise(t["interruption"] for t in trials if t["interruption"])
    ]
    factors = [abs(log(expected.value / after)) for expected, after in pairs]
    assert len(pairs) == 51
    assert exp(median(factors)) < 1.5
    assert sum(expected.low <= after <= expected.high for expected, after in pairs) >= 0.9 * 51


def test_half_of_the_recorded_later_tries_are_left_and_nearly_all_that_they_gained():
    """Moves of twelve jobs, on machines of eight kinds; each took 10 s, or longer."""
    made, gained, every = 0, 0.0, 0.0
    for first, *tries in recorded_trials():
        best, is_pinned, worst = first["measured"], False, 0.0
        for number, one in enumerate(tries):
            low, value, high = one["predicted"].values()
            rate, is_mode = one["measured"] or 0.0, one["name"].startswith("Flink's")
            times = value / best / (1.0 if is_pinned or is_mode else 1 + CLEAR_GAIN)
            seconds = gained_seconds(times, log(high / low) / 2, worst, 10.0, 10.0)
            is_made = seconds > 0 and (value >= (1 - NOISE) * best or worst > 0)
            gain = max(0.0, rate / best - 1 - NOISE) if number else 0.0
            made, gained, every = (
                made + (number > 0) * is_made,
                gained + gain * is_made,
                every + gain,
            )
            if rate and not low <= rate <= high:
                worst = max(worst, abs(log(rate / value)))
            if rate > best:
                best, is_pinned = rate, not is_mode
    assert made == 27
    assert gained == pytest.approx(0.96 * every, rel=0.01)


def test_a_job_that_runs_as_flink_places_it_needs_no_pins():
    """On equal machines, no other layout is expected to be worth them."""
    made = World({START: 100.0, "a": 101.0}).propose("job0")
    present = replace(made.where, is_pinned=False)
    of_flink = Candidate("Flink's SLOTS", at(START), RateInterval(90, 100, 110), line="mode: SLOTS")
    made = replace(made, candidates=(*made.candidates, of_flink), trials=(present,), where=present)
    assert made.target is None
    line = "no placement is expected to beat one line of Flink's configuration, with which the job "
    assert made.next_step == line + "would run as it does: mode: SLOTS"


def test_layouts_in_a_table_have_names_that_tell_them_apart():
    made = World({START: 100.0, "a": 150.0}).propose("job0")
    again = replace(made, trials=(made.where, Trial("a", at("b"), 120.0)))
    names = [row[0] for row in again.report().parts[0].rows]  # type: ignore[union-attr]
    assert names == ["layout before", "a", "a #2"]
    assert [row["name"] for row in again.to_json()["layouts"]] == ["a #2"]


def test_a_job_that_is_back_has_the_rate_that_is_measured_there_now():
    """What it was before may be stale; what was tried and lost is told in seconds."""
    world = World({START: 100.0, "a": 50.0}, {"a": 4.0})
    world.later[START] = 80.0
    improved = world.improved()
    assert (improved.where.name, improved.where.rate) == (PRESENT, 80.0)
    assert improved.stopped == 4.0
    assert "tries that gained nothing stopped the job for 4 s" in str(improved.report())


def test_a_job_that_keeps_up_is_not_moved():
    """Nobody offers more; with a rate that is asked for, it is moved where the model says so."""
    world = World({START: 100.0, "a": 300.0}, offered=80.0)
    assert world.improved().job == "job0"
    made = world.propose("job0")
    assert made.next_step.endswith("for a higher rate, give --rate")
    assert [*made.sentences()][-1].endswith("layout should carry 100 tuples/s (100 to 100)")
    asked = replace(world, asked=200.0)
    improved = asked.improved()
    assert (asked.where, improved.where.name) == ("a", "a")


def test_a_layout_in_which_the_job_does_not_run_counts_as_tried():
    """It is back where it was, under another id, and tries the next one."""
    world = World(
        {START: 100.0, "a": 500.0, "b": 300.0}, fails={"a": FlinkError("too few slots; returned")}
    )
    improved = world.improved(tries=2)
    assert (world.visited, improved.where.name) == (["a", "b"], "b")
    assert "did not run" in str(improved.report())
    assert any("too few slots" in line for line in world.told)


def test_a_job_does_not_stay_in_a_layout_that_could_not_be_measured():
    """Nothing is known of its rate there."""
    world = World({START: 100.0, "a": 500.0}, unmeasured={"a": FlinkError("no metrics")})
    improved = world.improved()
    assert (world.visited, improved.where.name) == (["a", START], PRESENT)
    assert "not measured" in str(improved.report())


def test_a_job_that_fails_while_it_is_measured_starts_again_where_it_ran():
    """Its move is over by then, so nothing else would start it."""
    world = World({START: 100.0, "a": 500.0}, dies="a")
    improved = world.improved()
    assert (world.visited, improved.where.name) == (["a", START], PRESENT)
    assert any("no memory left" in line for line in world.told)


def test_a_job_that_another_user_cancels_while_it_is_measured_is_not_started_again():
    world = World({START: 100.0, "a": 500.0}, dies="a", is_cancelled=True)
    with pytest.raises(EndedByOthers):
        world.improved()
    assert world.visited == ["a"]


def test_a_trial_of_which_the_end_is_not_known_ends_the_command():
    world = World({START: 100.0, "a": 500.0}, fails={"a": Undecided("no answer")})
    with pytest.raises(Undecided):
        world.improved()


@given(st.dictionaries(st.sampled_from("abc"), st.floats(10, 1000), min_size=1), st.integers(0, 30))
def test_whenever_trials_are_interrupted_the_job_ends_in_the_best_measured_layout(others, moment):
    """While it is measured, planned, moved or asked about; also while it goes back."""
    world = World({START: 100.0, **others}, interrupted=moment)
    try:
        world.improved()
    except KeyboardInterrupt:
        assert world.steps > moment
    assert world.rate >= 0.97 * max(world.carries[name] for name in (START, *world.known))
    assert world.where in (START, *world.known)


def test_a_job_that_was_not_moved_is_not_stopped_by_an_interruption():
    """At the first question."""

    def interrupt(_):
        raise KeyboardInterrupt

    world = World({START: 100.0, "a": 500.0})
    with pytest.raises(KeyboardInterrupt):
        world.improved(agrees=interrupt)
    assert (world.visited, world.number) == ([], 0)


def test_a_job_that_finishes_during_a_trial_is_left_alone():
    world = World({START: 100.0, "a": 500.0, "b": 50.0}, ends="a")
    improved = world.improved()
    assert world.visited == ["a"]
    assert world.told[-1] == "the job has finished"
    assert "not measured" in str(improved.report())


@given(st.floats(0, 20))
def test_trials_never_stop_a_job_for_longer_than_is_allowed(allowed):
    """Each move takes two seconds, and going back takes them again."""
    carries = {START: 100.0, "a": 500.0, "b": 450.0, "c": 90.0}
    world = World(carries, {"a": 0.9, "b": 1.9, "c": 9.0}, fails={"b": FlinkError("no")})
    improved = world.improved(max_interruption=allowed)
    assert (improved.stopped or 0.0) <= allowed
    if allowed < 4.0:
        assert world.told[-1].startswith("no further layout is tried: moving there stops the job")
        assert not world.visited


def test_a_trial_may_be_refused():
    world = World({START: 100.0, "a": 500.0})
    asked: list[str] = []
    improved = world.improved(agrees=lambda question: bool(asked.append(question)))
    assert improved.job == "job0"
    assert asked[0].startswith("try a: 500 tuples/s")


def test_an_interruption_is_expected_to_be_longer_where_the_job_has_not_run_yet():
    """By the warm-up on the slowest TaskManager that is cold; on warm ones, by the last move."""
    world = World({START: 10.0, "a": 50.0, "slow": 20.0}, {"a": 0.9})
    assert world.improver().propose(world.job).interruption.value == pytest.approx(2 + COLD / 0.5)
    moved = world.improved(tries=1)
    assert world.visited == ["a"]
    cold, warm = (moved.interruption_to(at(one)) for one in ("slow", START))
    assert cold.value == pytest.approx(2 + COLD / 0.2)
    assert warm == moved.interruptions.on([0.1], last=moved.where.interruption)
    again = moved.interruptions._replace(is_redeployed=True)
    assert again.on([0.1], last=3.0) == again.on([2.0, 0.1]) > again.on([1.0]) == again.on([])


def test_a_layout_of_chained_operators_is_known_if_the_job_was_in_it():
    """A watch remembers it by operators, and the model has one operator for the chain."""
    made = World({START: 100.0, "a": 200.0}).propose("job0", trials=(Trial("", at("a"), 150.0),))
    found = candidate(made.question, "a", Layout({"src -> out": ["a"]}))
    assert made.is_tried(found)


def test_a_layout_on_an_equal_task_manager_is_not_tried():
    """However much it may carry, by an interval that is as wide as the model is uncertain."""
    world = World({START: 100.0, "equal": 100.0, "slower": 90.0}, {"equal": 3.0, "slower": 3.0})
    world.improved()
    assert world.visited[:1] == ["slower"]
    assert "equal" not in world.visited


def test_an_equal_task_manager_is_tried_if_the_job_did_not_run_on_the_first_one():
    """What failed there, such as its memory, need not fail elsewhere."""
    carries = {START: 100.0, "a": 300.0, "equal": 300.0}
    world = World(carries, fails={"a": FlinkError("Direct buffer memory; returned")})
    assert (world.improved().where.name, world.visited) == ("equal", ["a", "equal"])


def test_every_trial_is_written_to_the_ledger():
    """With what was predicted before the move."""
    world = World({START: 100.0, "a": 200.0}, {"a": 0.9})
    world.improved()
    (entry,) = user_runs()
    assert (entry.job, entry.predicted, entry.measured) == ("job", pytest.approx(180.0), 200.0)
    Store.usual().path.unlink()
    Store.usual().path.mkdir()  # it cannot be written
    replace(world, where=START, number=0).improved()
    assert any(line.startswith("warning: ") for line in world.told)


def test_a_rate_that_is_asked_for_limits_what_may_be_gained():
    """More than is offered gains nothing."""
    made = World({START: 50.0}).propose("job0")
    other = Candidate("found", at("b"), RateInterval(90.0, 100.0, 110.0))
    asked = replace(made, question=replace(made.question, rate=75.0))
    assert made.gain(other) > 2000 > asked.gain(other) > 500


def test_a_proposal_says_what_its_intervals_rest_on():
    made = World({START: 50.0}).propose("job0")
    errors = PredictionErrors.of({"a": [0.1]}, 0.5, "errors of 1 run of 1 job")
    learned = replace(made, question=replace(made.question, errors=errors))
    told = f"intervals: {errors.words}"
    assert (told in made.sentences(), told in learned.sentences()) == (False, True)
    assert learned.to_json()["errors"]["from"] == errors.origin


def test_a_rate_that_nothing_limits_is_null_in_json():
    """No CPU is known of the job, so that its layouts carry any rate; JSON has no such number."""
    free = Candidate("found", at("b"), RateInterval(inf, inf, inf))
    document = replace(World({START: 100.0}).propose("job0"), candidates=(free,)).to_json()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["layouts"][0]["value"] is None


def test_a_job_elsewhere_whose_machines_do_not_limit_it_is_tried_elsewhere(shop):
    """Its source is held back, by a slow sink say, while CPU and links are nearly idle."""
    messages: list[str] = []
    held = JobImprover(FlinkEngine(shop(blocked=2.0).rest), None, tell=messages.append)
    made = held.propose("job")
    assert made.question.rates.contradiction is not None
    assert made.target is not None
    assert made.measured.flow.held_back == {"src"}
    assert messages[0].startswith("note: the model is off by +")
    assert replace(held, engine=FlinkEngine(shop().rest)).propose("job").target is None


def test_a_task_manager_that_is_not_prepared_gets_nothing(shop):
    """The others are configured for placements, and operators are spread over them."""
    flink = shop(blocked=2.0)
    managers = [task_manager(device, ["dev-0", "dev-1"]) for device in flink.devices[:2]]
    managers.append(task_manager("dev-2", pins=False))
    flink.answers["GET /taskmanagers"] = {"taskmanagers": managers}
    candidates = JobImprover(FlinkEngine(flink.rest), None).propose("job").candidates
    others = [one for one in candidates if one.can_be_pinned]
    assert {one.name for one in others} >= {"shares by speed", "found by search"}
    used = {device for one in others for devices in one.layout.values() for device in devices}
    assert used == {"dev-0", "dev-1"}
    assert "nothing can be pinned to 'dev-2'" in str(deployment_of(flink.rest, "job"))


@pytest.mark.parametrize(
    "checkpoints",
    [{"counts": {"completed": 0}, "latest": {"completed": None}}, failure("disabled", status=404)],
)
def test_a_job_without_checkpoints_is_tried_like_others(shop, checkpoints):
    """It is saved when it is stopped; how long that takes is not known."""
    flink = shop(blocked=2.0)
    flink.answers["GET /jobs/job/checkpoints"] = checkpoints
    made = JobImprover(FlinkEngine(flink.rest), None).propose("job")
    assert made.target is not None
    assert made.interruption.value > 0


CHAINS = StreamGraph.of(
    "chains",
    [
        Operator("clicks", ipt=1e4, rate=100_000.0),
        Operator("readings", ipt=2.5e5, rate=5_000.0),
        Operator("score", ipt=2.5e5),
    ],
    [Stream("readings", "score")],
)
"""Clicks need 1,000 MIPS. Readings need 2,500, the whole of a device."""
PLACED = {"clicks": ["d0"], "readings": ["d1"], "score": ["d1"]}
DEVICES = Cluster.of([Device(f"d{i}") for i in range(3)])


@dataclass(frozen=True)
class Measured:
    """An engine whose measurements are known."""

    rest: Any
    measurements: Iterator[Measurement]
    cards: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[str], None] = print
    # Cards, cluster and earlier windows that were given, measurement by measurement.
    asked: list[Any] = field(default_factory=list)

    def measure(self, job, seconds, **given):
        """Next measurement."""
        self.asked.append((self.cards, given["cluster"], given["observed"]))
        return next(self.measurements)


def cluster_of(*devices):
    """A cluster of these TaskManagers, on which the job runs as it is looked at."""
    answers = healthy(*devices) | {"GET /config": {"flink-version": "2.3.0"}}
    return FakeFlink(answers).rest


@pytest.fixture
def measured(monkeypatch):
    """Measure a job that is looked at by an engine, and find layouts by few evaluations."""

    def of(engine, layout, managers, **facts):
        monkeypatch.setattr(JobImprover, "_present_layout", lambda *_: layout)
        given = {"tell": engine.tell, "cluster": facts.pop("cluster", None)}
        improver = JobImprover(engine, None, **given)
        modeller = JobModeller(improver, budget=Budget(evaluations=2000), **facts)
        return modeller("job", {*managers.split()}, ())

    return of


@pytest.mark.parametrize(
    ("held_back", "kept", "carried"),
    [({"readings"}, 100_000, [103_000, 106_000, 110_000]), ((), 0, [75_000, 117_000, 210_000])],
)
def test_only_sources_that_are_held_back_send_more_in_other_layouts(
    measured, held_back, kept, carried
):
    """A third device doubles the readings; one device carries the clicks and some readings."""
    limited = {name: SourceFlow(0.0, is_limited=True) for name in held_back}
    flow = SourceFlow(0.0, is_limited=True, sources=limited)
    found = Measurement(CHAINS, DEVICES, flow)
    engine = Measured(cluster_of("d0", "d1", "d2"), repeat(found))
    model = measured(engine, Layout(PLACED), "d0 d1 d2")
    here, others = model.here, model.others
    assert here.carries.value == pytest.approx(105_000)
    assert {one.kept for one in (here, *others)} == {kept}
    best = {n: max(o.least_rate for o in (here, *others) if o.machines <= n) for n in model.sizes}
    assert [round(best[number], -3) for number in (1, 2, 3)] == carried


def question(devices):
    """A measured job of a cheap source and a mapper that takes 0.8 of a core in four subtasks."""
    operators = [Operator("src", rate=100.0, ipt=1e4), Operator("map", ipt=8e6, parallelism=4)]
    graph = StreamGraph.of("shop", operators, [Stream("src", "map")])
    cluster = Cluster.uniform(3, mips=1000.0)
    measured = Measurement(graph, cluster, SourceFlow(100.0))
    return Question(measured, Layout({"src": ["d0"], "map": devices}), {}, spreads=True)


def test_doubts_about_a_measurement_are_told_once(measured):
    """Numbers alone make no new doubt."""
    asked = question(["d0"] * 4)
    messages: list[str] = []
    doubts = iter([("x", "y: 0.1 of 0.41 cores"), ("x", "y: 0.2 of 0.5 cores"), ("z",), ("x",)])
    notes = (replace(asked.measured, notes=one) for one in doubts)
    engine = Measured(cluster_of("d0", "d1", "d2"), notes, tell=messages.append)
    improver = JobImprover(engine, None, tell=messages.append)  # type: ignore[arg-type]
    modeller = JobModeller(improver, budget=Budget(evaluations=100))
    measured(engine, asked.present, "d0 d1 d2")
    messages.clear()
    for _ in range(3):
        modeller("job", {"d0", "d1", "d2"}, ())
    assert [one for one in messages if len(one) < 40] == [
        "note: x",
        "note: y: 0.2 of 0.5 cores",
        "note: z",
    ]


@pytest.mark.parametrize(
    ("facts", "notes", "why"),
    [
        ({}, (), ""),
        ({f"{CPU_OF}map": UNKNOWN}, (), "the CPU of 'map' is not known"),
        ({}, (UNMEASURED_PYTHON,), "the CPU of the job's Python processes is not measured"),
        (
            {},
            (ASSUMED_CPU,),
            "the CPU of TaskManagers on other machines is assumed (give --cluster)",
        ),
    ],
)
def test_nothing_is_sure_of_fewer_task_managers_if_not_all_was_measured(
    measured, facts, notes, why
):
    asked = question(["d0", "d0", "d1", "d1"])
    graph = replace(asked.measured.graph, attributes=facts)
    found = replace(asked.measured, graph=graph, notes=notes)
    messages: list[str] = []
    engine = Measured(cluster_of("d0", "d1", "d2"), repeat(found), tell=messages.append)
    model = measured(engine, asked.present, "d0 d1 d2")
    here, others = model.here, model.others
    fewer = [one.least_rate for one in others if one.machines < here.machines]
    assert fewer
    assert (max(fewer) > 0) == (not why)
    note = f"note: the job is not moved to fewer TaskManagers, because {why}"
    assert (note in messages) == bool(why)


def test_a_job_is_judged_by_the_devices_and_cards_that_are_given(measured):
    """Those that are no TaskManagers at the moment do not count."""
    asked = question(["d0"] * 4)
    cards = {"": "10 Gbps", "d1": "1 Gbps", "d2": "1 Gbps"}
    engine = Measured(cluster_of("d0", "d1"), repeat(asked.measured), cards)
    given = asked.measured.cluster
    model = measured(engine, asked.present, "d0 d1", cluster=given)
    assert engine.asked == [({"": "10 Gbps", "d1": "1 Gbps"}, given, {})]
    assert model.sizes == (1, 2)
    assert {device for one in model.others for device in one.devices} <= {"d0", "d1"}


@pytest.mark.parametrize(
    ("max_rate", "ipt", "limit"),
    [(40.0, 1e4, "the max_rate of a subtask of ask"), (0.0, 6e7, "one core of d0")],
)
def test_a_subtask_that_waits_limits_a_job_and_not_its_core(max_rate, ipt, limit):
    """It reads no more, however much CPU is left for it."""
    ask = Operator("ask", ipt=ipt, max_rate=max_rate, parallelism=2)
    graph = StreamGraph.of("asking", [Operator("src", rate=100.0), ask], [Stream("src", "ask")])
    measured = Measurement(graph, Cluster.uniform(2, cores=4), SourceFlow(100.0))
    assert limit_of(measured, Layout({"src": ["d0"], "ask": ["d0", "d1"]})) == limit
