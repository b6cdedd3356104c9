"""What a decided move says beforehand, and what it does where it falls short."""

from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any, cast

import pytest
from flink_documents import task_manager
from shop_flink import ShopFlink

from streamplace import Cluster, Operator, Stream, StreamGraph
from streamplace.engines.flink.decide import improving
from streamplace.engines.flink.decide.decision import Candidate, decide, interval
from streamplace.engines.flink.decide.improving import JobImprover
from streamplace.engines.flink.decide.proposal import Proposal
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.move import comparing
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.settling import SourceFlow
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.live import Measurement
from streamplace.errors import ProblemError
from streamplace.io.ledger import read_ledger
from streamplace.model.graph import PROFILE_DRIFT
from streamplace.model.intervals import PredictionErrors

GRAPH = StreamGraph.of("job", [Operator("src", rate=100.0)])
PRESENT = Candidate("the present layout", {"src": ["a"]}, interval([100.0], 0.03))
FOUND = Candidate("the layout that was found", {"src": ["b"]}, interval([200.0], 0.1), 1)
SLOTS = Candidate("Flink's own layout SLOTS", {"src": ["b"]}, interval([200.0], 0.1), 1, "SLOTS")


def proposal(job: str, *others: Candidate, limited: bool = True) -> Proposal:
    """What is proposed for a job that reads 100 tuples/s."""
    measured = Measurement(GRAPH, Cluster.uniform(2), limited)
    plan = MovePlan(job, {"src": ["a"]}, {"src": ["b"]})
    return Proposal(job, measured, decide(PRESENT, others), 2.0, plan)


class Moves:
    """Stands for what moves a job: notes which it moved, and fails for some."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.plans: list[MovePlan] = []
        self.failures: dict[str, Exception] = {}

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Whatever is placed fits."""
        return MovePlan(job, {"src": ["a"]}, {"src": [*vectors["src"]]})

    def run(self, plan: MovePlan) -> FlinkMoved:
        """The job has a new id."""
        self.jobs.append(plan.job)
        self.plans.append(plan)
        if plan.job in self.failures:
            raise self.failures[plan.job]
        return FlinkMoved(f"{plan.job}+", 1.0, None)


@pytest.fixture
def moves() -> Moves:
    """No job has been moved yet."""
    return Moves()


def run(
    moves: Moves,
    monkeypatch: pytest.MonkeyPatch,
    there: SourceFlow,
    again: Proposal | Exception,
    ledger: Path | None = None,
    graph: StreamGraph = GRAPH,
) -> tuple[FlinkMoved, list[str]]:
    """Move a job that reads so much where it comes to, for which this is proposed then."""
    told: list[str] = []

    def propose(_: JobImprover, job: str, believed: float = 1.0) -> Proposal:
        if isinstance(again, Exception):
            raise again
        return replace(again, decision=again.decision.damped(believed))

    monkeypatch.setattr(comparing, "source_flow", lambda *_: there)
    monkeypatch.setattr(JobImprover, "propose", propose)
    engine: Any = type("Engine", (), {"rest": None})()
    improver = JobImprover(
        cast("FlinkEngine", engine), cast("FlinkMove", moves), tell=told.append, ledger=ledger
    )
    first = proposal("job", FOUND)
    first = replace(first, measured=replace(first.measured, graph=graph))
    return improver.run(first), told


def test_a_move_that_keeps_its_promise_is_the_only_one(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interval ends at 180, and what is not held back may read less."""
    for there in (SourceFlow(185.0, is_limited=True), SourceFlow(50.0)):
        moved, told = run(moves, monkeypatch, there, proposal("job+", FOUND))
        assert moved.job == "job+"
        assert "(measured), predicted were 200 tuples/s (180 to 220)" in told[0]
    assert moves.jobs == ["job", "job"]


@pytest.mark.parametrize(("varies", "seconds"), [(False, 5.0), (True, 60.0)])
def test_a_rate_that_varies_is_measured_for_a_minute(
    moves: Moves, monkeypatch: pytest.MonkeyPatch, *, varies: bool, seconds: float
) -> None:
    """Before the move and after it."""
    asked: list[float] = []

    def flow(_: Rest, job: str, seconds: float) -> SourceFlow:
        asked.append(seconds)
        return SourceFlow(200.0, seconds=seconds)

    monkeypatch.setattr(comparing, "source_flow", flow)
    engine: Any = type("Engine", (), {"rest": None})()
    improver = JobImprover(cast("FlinkEngine", engine), cast("FlinkMove", moves))
    made = proposal("job", FOUND)
    improver.run(replace(made, measured=replace(made.measured, varies=varies)))
    assert [plan.varies for plan in moves.plans] == [varies]
    assert asked == [seconds]


def test_a_move_that_falls_short_is_corrected_once(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little the second one reads."""
    short = SourceFlow(120.0, is_limited=True)
    moved, _ = run(moves, monkeypatch, short, proposal("job+", FOUND))
    assert moved.job == "job++"
    assert moves.jobs == ["job", "job+"]


def test_the_rate_of_a_job_that_was_measured_cold_may_be_lower(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its CPU per tuple changed by half within a minute: 180 / 1.5 is no reason to correct."""
    cold = replace(GRAPH, attributes={PROFILE_DRIFT: 0.5})
    for rate, moved_to in ((125.0, "job+"), (115.0, "job++")):
        there = SourceFlow(rate, is_limited=True)
        moved, _ = run(moves, monkeypatch, there, proposal("job+", FOUND), graph=cold)
        assert moved.job == moved_to


def test_sources_that_keep_up_may_read_a_little_less_after_a_move(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,000 tuples/s that do not depend on the layout, 3 % of noise; 1,180 were promised."""
    part = replace(PRESENT, carries=interval([1100.0], 0.03, [1000.0]), kept=1000.0)
    found = replace(FOUND, carries=interval([1200.0], 0.1, [1000.0]), kept=1000.0)
    monkeypatch.setattr(__name__ + ".PRESENT", part)
    monkeypatch.setattr(__name__ + ".FOUND", found)
    for rate, moved_to in ((1160.0, "job+"), (1140.0, "job++")):
        there = SourceFlow(rate, is_limited=True)
        moved, _ = run(moves, monkeypatch, there, proposal("job+", found))
        assert moved.job == moved_to


def test_a_move_that_falls_short_stays_where_nothing_better_is_found(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = SourceFlow(120.0, is_limited=True)
    moved, told = run(moves, monkeypatch, short, proposal("job+"))
    assert moved.job == "job+"
    assert moves.jobs == ["job"]
    assert "no layout was found that carries more" in told[-1]


def test_a_moved_job_that_cannot_be_measured_again_stays_moved(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not be warm in time; the first move has succeeded all the same."""
    short = SourceFlow(120.0, is_limited=True)
    moved, told = run(moves, monkeypatch, short, FlinkError("the job is not warm"))
    assert moved.job == "job+"
    assert told[-1] == "the placement is not corrected: the job is not warm"


def test_a_correction_that_is_undone_leaves_the_job_where_it_was_moved_to(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that returned has another id."""
    moves.failures["job+"] = FlinkError("slower; the job runs on its previous devices again")
    states = {"job+": "FINISHED", "job++": "CANCELED", "back": "RUNNING"}
    monkeypatch.setattr(improving, "chain_states", lambda *_: states)
    short = SourceFlow(120.0, is_limited=True)
    moved, told = run(moves, monkeypatch, short, proposal("job+", FOUND))
    assert moved.job == "back"
    assert "runs on its previous devices again" in told[-1]


@pytest.mark.parametrize(
    ("failure", "state"), [(Undecided("no answer"), "RUNNING"), (FlinkError("it failed"), "FAILED")]
)
def test_a_correction_of_which_the_end_is_not_known_fails(
    moves: Moves, monkeypatch: pytest.MonkeyPatch, failure: FlinkError, state: str
) -> None:
    """Flink answers no more, or nothing runs."""
    moves.failures["job+"] = failure
    monkeypatch.setattr(improving, "chain_states", lambda *_: {"job++": state})
    short = SourceFlow(120.0, is_limited=True)
    with pytest.raises(FlinkError, match=str(failure)):
        run(moves, monkeypatch, short, proposal("job+", FOUND))


@pytest.mark.parametrize(("unpinnable", "is_tried"), [([], True), (["a"], False)])
def test_the_program_of_a_job_that_stays_is_tried_where_that_is_possible(
    moves: Moves, monkeypatch: pytest.MonkeyPatch, unpinnable: list[str], is_tried: bool
) -> None:
    """On a stock cluster, what was decided needs no program and is told all the same."""
    monkeypatch.setattr(improving, "unpinnable", lambda *_: unpinnable)
    monkeypatch.setattr(JobImprover, "_present", lambda *_: {"src": ["a"]})
    engine: Any = type("Engine", (), {"rest": None})()
    improver = JobImprover(cast("FlinkEngine", engine), cast("FlinkMove", moves))
    made = replace(proposal("job", SLOTS), plan=None)
    assert (improver.planned(made).plan is not None) is is_tried
    assert replace(improver, move=None).planned(made).plan is None


def test_now_there_and_the_price_are_told() -> None:
    """200 tuples wait in two seconds, and 80 more are read in each second after."""
    text = [*proposal("job", FOUND).sentences()]
    assert text[0] == "now: 100 tuples/s (measured)"
    assert "  the layout that was found: 200 tuples/s (180 to 220)" in text
    assert text[-1] == (
        "moving it should gain at least 80 tuples/s and stops it for about 2 s, in which 200 "
        "tuples wait; that is made up for in 2.5 s"
    )


def test_a_layout_of_flinks_own_is_not_moved_to() -> None:
    made = proposal("job", FOUND, SLOTS)
    assert not made.moves
    assert made.to_json()["configuration"] == "taskmanager.load-balance.mode: SLOTS"
    assert made.to_json()["predicted"] == made.decision.chosen.carries.value


def test_a_job_that_keeps_up_is_told_how_to_ask_for_more() -> None:
    made = proposal("job", limited=False)
    assert not made.moves
    assert [*made.sentences()][-1].endswith(
        "moving it gains nothing; to place it for more, give --rate"
    )
    asked = " ".join(replace(made, asked=500.0).sentences())
    assert "give --rate" not in asked


def test_a_planned_move_is_worth_what_the_command_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python door judges by the same rules: two halves of a job of 100 tuples/s apart."""
    operators = [Operator("src", ipt=1e7, rate=100.0), Operator("out", ipt=1e7)]
    graph = StreamGraph.of("job", operators, [Stream("src", "out")])
    measured = Measurement(graph, Cluster.uniform(2), is_limited=True)
    plan = MovePlan("job", {"src": ["d0"], "out": ["d0"]}, {"src": ["d0"], "out": ["d1"]})
    monkeypatch.setattr("streamplace.engines.flink.engine.expected_pause", lambda *_: 2.0)
    made = FlinkEngine(Rest("http://flink:8081")).worth(measured, plan)
    assert made.moves
    assert made.decision.chosen.carries.value == pytest.approx(200.0)
    assert made.gain == pytest.approx(0.903 * 200 - 100)
    back = FlinkEngine(Rest("http://flink:8081")).worth(
        measured, MovePlan("job", plan.after, plan.before)
    )
    assert not back.moves


def test_a_correction_that_would_overshoot_is_not_made(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first move gained 1 of 100 tuples/s, so of the next promise no more is believed."""
    short = SourceFlow(101.0, is_limited=True)
    moved, told = run(moves, monkeypatch, short, proposal("job+", FOUND))
    assert moved.job == "job+"
    assert moves.jobs == ["job"]
    assert any("so nothing is moved" in line for line in told)


def test_every_move_is_written_to_the_ledger(
    moves: Moves, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """That which falls short, and its correction."""
    ledger = tmp_path / "ledger.jsonl"
    short = SourceFlow(150.0, is_limited=True)
    _, told = run(moves, monkeypatch, short, proposal("job+", FOUND), ledger)
    first, second = read_ledger(ledger).entries
    assert (first.job, first.predicted, first.measured) == ("job", 200.0, 150.0)
    assert (first.low, first.high) == pytest.approx((180.0, 220.0))
    assert first.is_limited
    assert first.held is False
    assert any("(measured), predicted were 150 tuples/s" in line for line in told)
    assert (second.predicted, second.measured) == (200.0, 150.0)  # of the model, all of the gain
    assert (second.low, second.high) == pytest.approx((180.0, 220.0))


def test_a_ledger_that_cannot_be_written_does_not_stop_a_move(
    moves: Moves, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    moved, told = run(moves, monkeypatch, SourceFlow(190.0), proposal("job+"), tmp_path)
    assert moved.job == "job+"
    assert any(line.startswith("warning: ") for line in told)


def test_the_interval_that_is_told_is_wider_than_what_layouts_are_compared_by() -> None:
    """Whatever is wrong with the model of a job is wrong with all of its layouts."""
    errors = PredictionErrors.of({str(i): [log(0.8)] for i in range(9)}, 0.9, "9 jobs")
    made = replace(proposal("job", FOUND), errors=errors)
    assert made.decision.chosen.carries == pytest.approx((180.0, 200.0, 220.0))
    assert made.to_json()["interval"] == pytest.approx(
        {"low": 160.0, "value": 200.0, "high": 250.0}
    )
    assert any(
        "the layout that was found carries 200 tuples/s (160 to 250)" in s for s in made.sentences()
    )


def test_errors_are_those_of_what_a_layout_carries_and_not_of_what_is_asked_for() -> None:
    """It carries 200 of which 40 are known; only 90 are asked for."""
    errors = PredictionErrors.of({str(i): [log(0.8)] for i in range(9)}, 0.9, "9 jobs")
    asked = replace(FOUND, carries=FOUND.carries.up_to(90.0), capacity=200.0, kept=40.0)
    now = replace(PRESENT, carries=interval([50.0], 0.03))
    measured = Measurement(GRAPH, Cluster.uniform(2), True)
    made = Proposal("job", measured, decide(now, [asked]), 2.0, errors=errors, asked=90.0)
    assert made.capacity == pytest.approx((40 + 0.8 * 160, 200.0, 40 + 160 / 0.8))
    assert made.interval == (90.0, 90.0, 90.0)
    alone = replace(made, asked=150.0)
    assert alone.interval == pytest.approx((150.0, 150.0, 150.0))
    assert replace(made, asked=None).interval == made.capacity


def test_a_job_elsewhere_whose_machines_do_not_limit_it_is_not_moved(
    shop: Callable[..., ShopFlink],
) -> None:
    """Its source is held back, by a slow sink say, while CPU and links are nearly idle."""

    def engine(blocked: float) -> FlinkEngine:
        flink = shop(blocked)
        flink.answers["GET /config"] = {"flink-version": "2.3.0"}
        flink.answers |= {f"GET /taskmanagers/{d}": {"allocatedSlots": []} for d in flink.devices}
        return FlinkEngine(flink.rest)

    told: list[str] = []
    held = JobImprover(engine(blocked=2.0), None, tell=told.append)
    with pytest.raises(ProblemError, match=r"the model is off by \+\d+% .* means much"):
        held.propose("job")
    assert not told
    measured = replace(held, trusts_profile=True).propose("job").measured
    assert measured.is_limited
    assert measured.held_back == {"src"}
    (warning,) = told
    assert warning.startswith("warning: the model is off by +")
    told.clear()
    assert not replace(held, engine=engine(blocked=0.0)).propose("job").moves
    assert not told


def test_a_task_manager_that_is_not_prepared_gets_nothing(shop: Callable[..., ShopFlink]) -> None:
    """The others are configured for placements, and operators are spread over them."""
    flink = shop(blocked=2.0)
    managers = [task_manager(device, ["dev-0", "dev-1"]) for device in flink.devices]
    managers[2] |= {key: {"managedMemory": 100} for key in ("totalResource", "freeResource")}
    flink.answers |= {f"GET /taskmanagers/{d}": {"allocatedSlots": []} for d in flink.devices}
    flink.answers["GET /taskmanagers"] = {"taskmanagers": managers}
    flink.answers["GET /config"] = {"flink-version": "2.3.0"}
    told: list[str] = []
    improver = JobImprover(FlinkEngine(flink.rest), None, trusts_profile=True, tell=told.append)
    candidates = improver.propose("job").decision.candidates
    others = [one for one in candidates if one.name != PRESENT.name]
    assert {one.name for one in others} >= {"an even spread", "the layout that was found"}
    used = {device for one in others for devices in one.layout.values() for device in devices}
    assert used == {"dev-0", "dev-1"}
    assert any(line.startswith("note: nothing can be pinned to 'dev-2', so") for line in told)
