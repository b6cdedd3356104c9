"""Hostile answers of the API server, and of Flink behind it: one clear line, and no mistake."""

import gzip
import json
import random
from contextlib import suppress
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fake_flink import layout_option
from operator_stand_in import (
    CORE,
    PATH,
    ConfigMaps,
    FakeKubernetes,
    claimed,
    claimed_again,
    journal,
    resource,
    specification,
)
from pods import NAMESPACE

from streamplace.errors import ProblemError, SettingError, StreamplaceError
from streamplace.flink.operator import api as access
from streamplace.flink.operator import journal as journals
from streamplace.flink.operator import patching
from streamplace.flink.operator import resource as reading
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.patch_table import OtherFields, PatchStep
from streamplace.flink.operator.patching import PatchTransaction
from streamplace.flink.rest import client
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.store import Holder, TakenOver
from streamplace.flink.watch import pods as watching
from streamplace.flink.watch import rounds as passing
from streamplace.flink.watch.deciding import WatchChoice
from streamplace.flink.watch.pods import PodMover

OWNER = f"{NAMESPACE}/count"
VALUES = (
    *(None, True, -1, 0, 10**18, 10**400, 1e308, [], {}, [None], {"a": None}, [[]], {"": {}}),
    *("", "null", "NaN", "stateless", "RUNNING", "FAILED", "\x1b[2J", "../x", "v1_" + "9" * 5_000),
)
BODIES = (
    *(b"", b"null", b"[]", b"{}", b"\xff", b"{", b'{"a":NaN}', b'"a"', b"<html><title>x</title>"),
    *(b'{"message":{"a":[1]}}', b'{"kind":"Status","reason":"NotFound"}', b'{"errors":[null]}'),
    *(b"[" * 100_000, b'{"a":' * 5_000, b'{"a":' + b"9" * 5_000 + b"}", b"404 page not found\n"),
)
CODES = (200, 200, 201, 204, 301, 302, 400, 401, 403, 404, 404, 409, 410, 422, 429, 500, 503)
KINDS = (
    ("mutated",) * 4 + ("refused",) * 2 + ("broken", "slow", "dripping", "cut", "packed", "huge")
)
SLOW = [pytest.param(part, marks=pytest.mark.slow) for part in range(4, 200)]
"""Further parts, of ten changes or of three commands."""


def no_plan(*_):
    """In place of a plan, which rests on what was read before."""
    raise ProblemError("no plan")


class Server(FakeKubernetes):
    """An API server with a resource, on which more is told, and faults."""

    def __init__(self, clock, fault=lambda number, request, answer: answer, flink=None):
        super().__init__({"count": specification()}, {"count": flink}, clock=clock)
        self.fault, self.requests_made = fault, 0
        more = {"labels": {"a": "b"}, "managedFields": [{"manager": "kubectl"}]}
        self.document["metadata"] |= more
        self.document["status"]["jobStatus"]["jobId"] = "a" * 32
        pod = {"metadata": {"name": "count-1"}, "spec": {"nodeName": "node"}}
        about = {"involvedObject": {"kind": "FlinkDeployment", "name": "count"}}
        facts = {"type": "Warning", "reason": "Bad", "message": "no", "metadata": {}}
        self.answers |= {
            f"GET {CORE}/pods": {"items": [pod, pod]},
            f"GET {CORE}/events": {"items": [about | facts | {"eventTime": "2999"}]},
        }

    @property
    def document(self):
        """The resource."""
        return self.documents["count"]

    def respond(self, request):
        """Answer to a request; a command that asks for ever is a defect."""
        self.requests_made += 1
        assert self.requests_made < 5_000
        self.clock.now += 0.01
        return self.fault(self.requests_made, request, super().respond(request))


def places(document):
    """Every object and list of a document with each of its keys."""
    if isinstance(document, dict | list):
        for key in [*document] if isinstance(document, dict) else range(len(document)):
            yield document, key
            yield from places(document[key])


class Hostile:
    """Faults that follow from a seed: at one request, at some, or from one on."""

    def __init__(self, seed, clock, last=12):
        self.dice, self.clock = random.Random(seed), clock
        first, more = self.dice.randint(1, last), self.dice.choice((1, 1, 3, 40, 10**9))
        self.numbers, self.kind = range(first, first + more), self.dice.choice(KINDS)

    def __call__(self, number, request, answer):
        """What is answered in place of an answer."""
        return getattr(self, self.kind)(answer) if number in self.numbers else answer

    def mutated(self, answer):
        """One of its values is another one, or gone, or nests deeply."""
        document = answer.json()
        place, key = self.dice.choice([*places(document)] or [({}, "a")])
        place[key] = self.dice.choice(VALUES)
        if self.dice.random() < 0.2:
            del place[key]
        elif self.dice.random() < 0.1:
            place[key] = json.loads("[" * 900 + "]" * 900)
        return httpx.Response(answer.status_code, content=json.dumps(document).encode())

    def refused(self, answer):
        """Another status and body."""
        code, content = self.dice.choice(CODES), self.dice.choice(BODIES)
        return httpx.Response(code, content=content, headers={"Location": "http://x\x7f"})

    def broken(self, answer):
        """The connection breaks."""
        raise self.dice.choice((httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError))("")

    def slow(self, answer):
        """It comes too late."""
        self.clock.now += 30
        raise httpx.ReadTimeout("")

    def dripping(self, answer):
        """A byte comes now and then, for hours."""

        def parts():
            for _ in range(10_000):
                self.clock.now += 1.0
                yield b" "

        return httpx.Response(200, content=parts())

    def cut(self, answer):
        """Half of it comes."""

        def parts():
            yield answer.content[: len(answer.content) // 2]
            raise httpx.ReadError("")

        return httpx.Response(200, content=parts())

    def packed(self, answer):
        """It unpacks to more."""
        content = gzip.compress(b" " * 10**5)
        return httpx.Response(200, content=content, headers={"Content-Encoding": "gzip"})

    def huge(self, answer):
        """100 MB, once."""
        self.numbers = range(0)
        return httpx.Response(200, content=iter(100 * [bytes(2**20)]))


@pytest.fixture
def timed(monkeypatch, clock):
    """The only time."""
    for module in (patching, access, journals):
        monkeypatch.setattr(module, "monotonic", clock.monotonic)
    for module in (patching, journals):
        monkeypatch.setattr(module, "sleep", clock.sleep)
    for module in (client, watching, passing):
        monkeypatch.setattr(module, "time", clock)
    return clock


def finished(server, told):
    """The end of a change that has begun, whose faults pass; it is told how it is finished."""
    own, ended = journal(), None
    fault, server.fault = server.fault, lambda number, request, answer: answer
    claim = claimed(server.api)
    server.fault, server.requests_made = fault, 0
    try:
        ended = PatchTransaction(server.api, claim, told.append, 30.0).run()
    except TakenOver as error:  # as a server says that lies
        told += [str(error), own.resume_by]
    except StreamplaceError as error:
        told.append(str(error))
    assert server.document["spec"] in (own.before, own.after)
    server.fault = lambda number, request, answer: answer
    left = ended is None
    with suppress(SettingError):
        claim, left = claimed_again(server.api), True  # also where its end could not be written
        ended = PatchTransaction(server.api, claim, [].append, 30.0).run()
    lies = getattr(fault, "kind", "") == "mutated"  # as that there is no journal
    assert not left or lies or any(own.resume_by in line for line in told), told
    assert server.maps.get("streamplace-journal-count")["data"] == {}
    assert len(server.patches) <= 4
    assert ended is not None
    return ended.step


@pytest.mark.parametrize("part", [*range(4), *SLOW])
def test_a_change_ends_as_it_was_or_as_changed_or_tells_how(timed, part):
    """A server that lies is believed, and what it says of others is told."""
    for seed in range(10 * part, 10 * part + 10):
        told: list[str] = []
        server = Server(timed, Hostile(seed, timed))
        step = finished(server, told)
        is_new = server.document["spec"] == journal().after
        is_kept = step in (PatchStep.KEPT, PatchStep.ENDED_AS_CHANGED)
        is_theirs = step is PatchStep.CONFLICT or "others have changed" in " ".join(told)
        assert is_new == is_kept or is_theirs, (seed, step, told)


@pytest.mark.parametrize("status", [500, 409])
def test_a_patch_that_is_never_taken_is_given_up(timed, status):
    """As where the operator is gone whose webhook is asked, or where others are always first."""
    server = Server(timed)
    server.answers[f"PATCH {PATH}/count"] = httpx.Response(status)
    assert finished(server, []) is PatchStep.UNCHANGED


def test_a_patch_that_others_put_back_is_not_sent_again(timed):
    """Though its answer is lost."""

    def fault(number, request, answer):
        if request.method == "PATCH":
            raise httpx.ReadTimeout("")
        if number > 3:
            server.document["spec"] = specification()
        return answer

    server = Server(timed, fault)
    assert finished(server, []) is PatchStep.CONFLICT
    assert len(server.patches) == 1


def test_a_page_of_a_gateway_is_no_deletion(timed):
    """The change is left to be resumed, as after silence."""

    def fault(number, request, answer):
        is_read = request.method == "GET" and b"flinkdeployments" in request.extensions["target"]
        return httpx.Response(404, text="<html>") if server.patches and is_read else answer

    told: list[str] = []
    server = Server(timed, fault)
    assert finished(server, told) is PatchStep.KEPT
    assert any(PatchStep.UNDECIDED.value in line for line in told)


def test_a_patch_in_flight_has_its_time_when_it_is_interrupted(timed, monkeypatch):
    """It has its effect a second after the interrupt."""
    seen: dict[str, Any] = {}

    def fault(number, request, answer):
        if request.method == "PATCH" and len(server.patches) == 1:
            server.documents["count"], seen["late"] = seen["early"], server.document
            raise KeyboardInterrupt
        seen["early"] = deepcopy(server.document)
        return answer

    def sleep(seconds):
        timed.sleep(seconds)
        server.documents["count"] = seen.pop("late", server.document)

    monkeypatch.setattr(patching, "sleep", sleep)
    server = Server(timed, fault)
    with pytest.raises(KeyboardInterrupt):
        PatchTransaction(server.api, claimed(server.api), print, 30.0).run()
    assert server.document["spec"] == specification()
    assert server.patches == [journal().patch, journal().back]


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("number", range(1, 5))
def test_a_journal_that_cannot_be_written_leaves_a_line_and_can_be_finished(timed, number, status):
    """Nothing is patched that is not written down before."""
    told: list[str] = []

    def fault(asked, request, answer):
        is_write = request.method == "PUT"
        writes.append(is_write)
        return httpx.Response(status) if is_write and sum(writes) >= number else answer

    writes: list[bool] = []
    assert finished(Server(timed, fault), told) is PatchStep.KEPT


def test_a_claim_whose_answer_is_lost_is_this_ones(timed):
    def fault(asked, request, answer):
        if request.method == "POST":
            raise httpx.ReadTimeout("")
        return answer

    server = Server(timed, fault)
    assert claimed(server.api).journal.holder == Holder.current()


@pytest.mark.parametrize("number", range(1, 10))
def test_what_another_machine_has_finished_is_not_undone(timed, monkeypatch, number):
    """Its clock was set forward, so the lease seemed to have ended."""
    elsewhere = Holder.current().model_copy(update={"host": "elsewhere"})

    def fault(asked, request, answer):
        if asked == number:
            with monkeypatch.context() as there:
                there.setattr(Holder, "current", lambda: elsewhere)
                there.setattr(Holder, "is_here", False)
                there.setattr("streamplace.flink.store.LEASE_SECONDS", -1.0)
                PatchTransaction(server.api, claimed_again(server.api), print, 30.0).run()
        return answer

    server = Server(timed)
    claim = claimed(server.api)
    server.fault, server.requests_made = fault, 0
    with suppress(TakenOver):
        PatchTransaction(server.api, claim, print, 30.0).run()
    assert server.document["spec"] == journal().after
    assert len(server.patches) == 1
    assert server.maps.get("streamplace-journal-count")["data"] == {}


def test_a_watch_changes_nothing_once_others_let_changes_lose_the_state():
    """The resource was another one when the watch began."""
    log: Any = None
    for change in ({"job": {"upgradeMode": "stateless"}}, {"job": {"upgradeMode": "Savepoint"}}):
        api: Any = ConfigMaps()
        mover = PodMover(api, resource(**change), log, 30.0, "watch again")
        with pytest.raises(FlinkError, match="loses the state"):
            mover.carry_out(
                "", layout_option(["a"], 1.0), WatchChoice("", layout_option(["b"], 1.0))
            )
    own = journal(before=merged(specification(), {"job": {"upgradeMode": "stateless"}}))
    assert own.others_in(own.before) is OtherFields.RISKY


COMMANDS = {
    "profile": (),
    "advise": ("--rate", "1.1x"),
    "move": ("--yes",),
    "watch": ("--apply", "--every", "10"),
}


@pytest.mark.parametrize("part", [0, *SLOW])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_or_is_refused_in_one_line(run, timed, shop, monkeypatch, command, part):
    monkeypatch.setattr("streamplace.flink.operator.modes.candidates", lambda _: [])
    monkeypatch.setattr("streamplace.flink.advise.advise.planned_pods", no_plan)
    monkeypatch.setattr("streamplace.flink.advise.advise._planned", no_plan)
    for seed in range(3 * part, 3 * part + 3):
        server = Server(timed, Hostile(seed, timed, 60), shop())
        for module in (access, reading):
            monkeypatch.setattr(module, "usual_api", lambda server=server: server.api)
        end = timed.now + 300

        def sleep(seconds, end=end):
            timed.now += seconds
            if timed.now > end:
                raise KeyboardInterrupt

        if command == "watch":
            monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=sleep))
        answer = run("flink", command, "--rest", f"kubernetes:{OWNER}", *COMMANDS[command])
        assert answer.status in (0, 2), (seed, answer)
        assert answer.status == 0 or answer.err.splitlines()[-1].startswith("error: "), answer
        assert not server.patches or command == "watch"
