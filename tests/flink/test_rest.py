"""The REST client: connections, secured ones, answers, and servers that mean no good."""

import gzip
import json
import ssl
import time
import tomllib
from base64 import b64encode
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from command_lines import settings_file
from fake_flink import (
    ANSWERS,
    JOB,
    TASK_MANAGER,
    Clock,
    FakeFlink,
    InTurn,
    Raw,
    failure,
    healthy,
    job,
    jobs,
    said,
)
from operator_stand_in import resource

from streamplace.flink.cpu import threads as cpu
from streamplace.flink.measure import sampling
from streamplace.flink.rest import client
from streamplace.flink.rest.answers import parse_answer
from streamplace.flink.rest.client import Access, FlinkError, NoAnswer, Refusal, Rest, only_job
from streamplace.flink.rest.plan import read_plan

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SPACES = b" " * 65536
BROKEN = {
    "no HTTP": Raw(b"220 ftp.example ready\r\n\r\n"),
    "nothing": Raw(b""),
    "a status that is not a number": Raw(b"HTTP/1.1 abc OK\r\n\r\n{}"),
    "an endless status line": Raw(b"HTTP/1.1 ", b"x" * 65536),
    "endless headers": Raw(OK, b"a: b\r\n" * 1000),
    "a body that breaks off": Raw(OK + b'Content-Length: 100\r\n\r\n{"taskmanagers": []}'),
    "chunks of no size": Raw(CHUNKED + b"zzz\r\n{}"),
    "an endless body": Raw(OK + b"\r\n", SPACES),
    "a chunk of a negative size": Raw(CHUNKED + b"-1\r\n", SPACES),
    "no JSON": said(b"<html>"),
    "no UTF-8": said(b'"\xff"'),
    "half a surrogate": said(rb'{"taskmanagers": "\ud800"}'),
    "nothing but a head": said(b""),
    "another type": said(b"[]"),
    "no keys": said(b"{}"),
    "NaN": said(b"NaN"),
    "a number of 5000 digits": said(b"9" * 5000),
    "deep JSON": said(b"[" * 1_000_000),
    "a failure with deep JSON": said(b'{"errors":' * 500_000, 500),
    "a failure in binary": said(bytes(range(256)), 503),
    "a failure of another type": said(b'{"errors": {"a": [1]}}', 400),
    "a redirection to nowhere": said(b"", 307),
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """Nothing else runs on this machine; time passes for the sampler only while it sleeps."""
    monkeypatch.setattr(cpu, "local_task_managers", list)
    monkeypatch.setattr(sampling, "time", Clock())
    monkeypatch.setattr(sampling, "PAUSE_SECONDS", 1.0)


@pytest.fixture
def refused_by(refusal):
    """The line with which the description of a cluster that answers so is refused."""

    def call(answers=None, **more):
        with FakeFlink(answers, **more).served() as flink:
            return refusal("flink", "cluster", "--rest", flink.url, "-o", "cluster.toml")

    return call


@pytest.mark.parametrize("how", BROKEN)
def test_any_answer_of_a_server_ends_in_one_line(refused_by, how):
    """And writes nothing."""
    refused = refused_by(otherwise=BROKEN[how])
    assert len(refused) < 600
    assert refused.strip().isprintable()


@dataclass(frozen=True, slots=True)
class Dripping(Raw):
    """Bytes that come one by one."""

    def send(self, connection):
        """Send them."""
        for byte in self.content:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)
        return connection


@pytest.mark.parametrize("head", [b"Content-Length: 999\r\n\r\n", b"a: "], ids=["body", "head"])
def test_the_timeout_is_for_the_whole_answer(head):
    """However often a part of it comes."""
    begin = time.monotonic()
    with FakeFlink(otherwise=Dripping(OK + head + b" " * 200)).served() as flink:
        with pytest.raises(NoAnswer):
            Rest(flink.url).post("/jobs", {}, seconds=0.5)
        assert time.monotonic() - begin < 2


def test_a_compressed_answer_is_not_decompressed():
    """A few kB of it may be gigabytes; nobody who is asked for plain ones packs them."""
    packed = gzip.compress(b'{"jobs": []}')
    head = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with FakeFlink(otherwise=Raw(OK + head + packed)).served() as flink:
        with pytest.raises(FlinkError):
            Rest(flink.url).jobs()
        assert flink.headers[0]["Accept-Encoding"] == "identity"


def test_redirections_are_reported_and_not_followed(refused_by):
    """The other host is asked nothing; a password in its address is not shown."""
    with FakeFlink(ANSWERS).served() as other:
        there = other.url.replace("//", "//me:secret@")
        refused = refused_by(otherwise=said(b"", 302, f"{there}/taskmanagers"))
    assert other.url.rpartition("/")[2] in refused
    assert "secret" not in refused
    assert other.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://localhost:21",
        "file:///etc/passwd",
        "localhost:8081",
        "http://",
        "http://localhost:port",
        "http://localhost:99999",
        "http://[::1",
        "http://local host",
        "http://localhost/\r\nX-Evil: 1",
        "http://localhost/?a=b",
        "http://größe:8081",
        "",
    ],
)
def test_malformed_addresses_are_refused(refusal, url):
    """In one line, whatever they hold."""
    assert "http://HOST:8081" in refusal("flink", "cluster", "--rest", url)


PASSWORDS = [
    "http://me:secret@127.0.0.1:8081",
    "http://:secret@127.0.0.1:8081/",
    "https://secret@nowhere.invalid:8081",
    "http://me:secret@127.0.0.1:8081/?secret=secret@",
    "ftp://me:secret@127.0.0.1",
    "http:me:secret@127.0.0.1:8081",
    "http://me:sec@secret@127.0.0.1:port",
    "http://me:se/secret@127.0.0.1:8081",
    "me:secret@127.0.0.1:8081",
]


@pytest.mark.parametrize("address", PASSWORDS)
def test_a_password_belongs_in_a_file_and_not_in_an_address(refusal, address):
    """Journals and printed commands would lack it, or show it; nor is that of no address shown."""
    refused = refusal("flink", "cluster", "--rest", address)
    assert ("--authorization FILE" in refused) is (address in PASSWORDS[:3])
    assert "sec" not in refused


def test_names_of_a_server_are_data_in_the_cluster_file(run, tmp_path):
    """Names hold what they like, and stay names."""
    names = ['a"\nmips = 9\n[[devices]]\nname = "b', "tab\there", "back\\slash", "\x7f", "😀", "ß"]
    managers = [TASK_MANAGER | {"id": name} for name in names]
    answers = {"GET /taskmanagers": {"taskmanagers": managers}, "GET /jobs": {"jobs": []}}
    with FakeFlink(answers).served() as flink:
        given = settings_file(tmp_path, mips="10 MIPS")
        answer = run("flink", "cluster", "--rest", flink.url, "-o", "cluster.toml", *given)
    assert answer.status == 0
    tables = tomllib.loads((tmp_path / "cluster.toml").read_text("utf-8"))
    assert [device["name"] for device in tables["devices"]] == names
    assert {device["mips"] for device in tables["devices"]} == {"10 MIPS"}
    costs = {"overhead", "overhead_per_byte"}
    assert set(tables) == {"bandwidth", "framing", "headroom", "devices", *costs}


MEMORY = "memoryConfiguration.totalProcessMemory"
EXTENDED = "totalResource.extendedResources"
NO_MEMORY = ("1\n[[devices]]\nname = 'evil'", True, 1.5, -1, [], 10**30)
NO_AMOUNT = (10**400, True, "1", None, [1])


@pytest.mark.parametrize(
    ("where", "amount"),
    [*((MEMORY, one) for one in NO_MEMORY), *((EXTENDED, {"dev-0": one}) for one in NO_AMOUNT)],
)
def test_numbers_of_a_server_are_finite_numbers(refused_by, where, amount):
    """Text that stood there unquoted was read as tables of the file; floats have an end."""
    field, _, key = where.partition(".")
    manager = TASK_MANAGER | {field: TASK_MANAGER[field] | {key: amount}}
    refused = refused_by({"GET /taskmanagers": {"taskmanagers": [manager]}})
    assert f"taskmanagers[0].{where}" in refused


FAILED = {"id": "x", "status": "FAILED"}


@pytest.mark.parametrize(
    ("others", "options", "message"),
    [
        ([FAILED, {"id": "y", "status": "FINISHED"}], (), "(x is FAILED; y is FINISHED)"),
        ([FAILED, {"id": JOB, "status": "RESTARTING"}], (), f"job {JOB} is RESTARTING"),
        ([], ("--job", ""), "--job ID"),
    ],
    ids=["all have ended", "one has not ended", "a shell variable that is not set"],
)
def test_the_default_is_the_only_job_that_has_not_ended(refusal, others, options, message):
    """Be it restarting, which is then told; for an empty id Flink answers with all jobs."""
    restarting = ANSWERS[f"GET /jobs/{JOB}"] | {"state": "RESTARTING"}
    listed = {"GET /jobs": {"jobs": others}, "GET /jobs/": {"jobs": []}}
    with FakeFlink(ANSWERS | listed | {f"GET /jobs/{JOB}": restarting}).served() as flink:
        assert message in refusal("flink", "profile", "--rest", flink.url, *options)


def test_jobs_to_choose_from_are_named(refusal):
    """Unless the cluster is reached by the name of one, such as a FlinkSessionJob."""
    rows = [{"id": name, "status": "RUNNING"} for name in "xy"]
    named = {f"GET /jobs/{name}": job(f"shop-{name}", "RUNNING", {}) for name in "xy"}
    with FakeFlink(ANSWERS | named | {"GET /jobs": {"jobs": rows}}).served() as flink:
        refused = refusal("flink", "profile", "--rest", flink.url)
        assert all(f"{name} (shop-{name})" in refused for name in "xy")
        rest = flink.rest
        rest.resource = replace(resource(), document={"status": {"jobStatus": {"jobId": "y"}}})
        assert only_job(rest, None) == "y"


def test_a_suspended_job_is_awaited(run):
    """Its JobManager is no leader any more; the next one goes on with the job."""
    suspended = ANSWERS[f"GET /jobs/{JOB}"] | {"state": "SUSPENDED"}
    listed = {"jobs": [{"id": JOB, "status": "SUSPENDED"}]}
    answers = ANSWERS | {"GET /jobs": listed, f"GET /jobs/{JOB}": suspended}
    with FakeFlink(answers).served() as flink:
        for given in ([], ["--job", JOB]):
            answer = run("flink", "profile", "--rest", flink.url, *given)
            assert answer.status == 2
            assert "start" not in answer.err
        assert flink.rest.live_jobs() == []
        runs = suspended | {"state": "RUNNING"}
        flink.answers[f"GET /jobs/{JOB}"] = InTurn(suspended, suspended, runs)
        messages: list[str] = []
        assert flink.rest.patient(60.0, messages.append).state(JOB) == "RUNNING"
    assert [JOB in line for line in messages] == [True]


@pytest.mark.parametrize(
    ("status", "complaint", "error"),
    [
        (503, "ongoing leader election. Please refresh.", NoAnswer),
        (429, "too many requests", NoAnswer),
        (401, "the token has expired", NoAnswer),
        (403, "you may not see this", Refusal),
        (500, "x.RecipientUnreachableException: no", NoAnswer),
        (500, "java.util.concurrent.TimeoutException: Invocation timed out", NoAnswer),
        (400, "org.apache.kafka.common.errors.TimeoutException: no topic", Refusal),
        (500, "java.lang.Error: no", Refusal),
    ],
)
def test_a_gateway_or_a_wrong_job_manager_is_no_refusal(status, complaint, error):
    """While another takes over, or a gateway lets nobody through, what is asked is asked again."""
    flink = FakeFlink(otherwise=failure("Internal", complaint, status=status))
    with flink.served(), pytest.raises(FlinkError) as failed:
        Rest(flink.url).task_managers()
    assert type(failed.value) is error
    with flink.served(), pytest.raises(NoAnswer):
        Rest(flink.url).live_jobs()  # which Flink itself never refuses


WAITING = job("shop", "RUNNING", {"map": "SCHEDULED"})


@pytest.mark.parametrize(
    ("devices", "slots", "message"),
    [
        (("dev-0", "dev-1"), [{"jobId": "other"}], "whole TaskManagers"),
        (("dev-0", "dev-1"), [], "'map' is SCHEDULED"),
        ((), [], "'map' is SCHEDULED"),
    ],
)
def test_a_job_that_waits_for_whole_task_managers_gets_advice(devices, slots, message):
    """Only where others have slots of each; whoever cancelled them might end them in vain."""
    flink = FakeFlink(healthy(*devices) | {"GET /jobs/job": WAITING})
    for device in devices:
        flink.answers[f"GET /taskmanagers/{device}"] = {"allocatedSlots": slots}
    with pytest.raises(FlinkError, match=message):
        flink.rest.running_job("job")


def test_the_path_of_a_request_is_not_normalized():
    """An id of two dots is no step up."""
    flink = FakeFlink({"GET /api/jobs/..": {}})
    with flink.served(), pytest.raises(FlinkError):
        Rest(f"{flink.url}/api/").get("/jobs/..")
    assert flink.asked == [("GET /api/jobs/..", None)]


def test_the_empty_plan_of_an_unplanned_job_is_none():
    """Flink 1 shows an empty one while a job is initialized, or waits for slots."""
    document = {"name": "j", "state": "INITIALIZING", "vertices": [], "plan": {}}
    assert parse_answer("/jobs/x", json.dumps(document).encode())["plan"] is None
    with pytest.raises(ValueError, match=r"plan\.nodes"):
        parse_answer("/jars/x/plan", b'{"plan": {}}')


def test_a_task_runs_only_when_all_of_its_subtasks_do():
    """Flink calls a task RUNNING as soon as one of its subtasks runs."""
    running = ANSWERS[f"GET /jobs/{JOB}"]
    first, *others = running["vertices"]
    late = {**running, "vertices": [{**first, "tasks": {"SCHEDULED": 3, "RUNNING": 1}}, *others]}
    seen = {f"GET /jobs/{JOB}": InTurn(late, late, running)}
    with FakeFlink(ANSWERS | seen).served() as flink:
        Rest(flink.url).wait_running(JOB)
    assert flink.requests("GET").count(f"/jobs/{JOB}") == 3


def test_a_job_that_ends_by_itself_while_it_is_cancelled_has_ended():
    """Flink refuses the request before its document of the job says so."""
    runs, failed = (job("new", state, {"map": state}) for state in ("RUNNING", "FAILED"))
    answers = healthy("dev-0") | {
        "GET /jobs/new": InTurn(runs, runs, failed),
        "PATCH /jobs/new": failure("a.B: it has reached another terminal state", status=409),
    }
    assert FakeFlink(answers).rest.cancel("new") == "FAILED"
    answers |= {"GET /jobs/new": runs, "PATCH /jobs/new": failure("a.B: no", status=403)}
    with pytest.raises(Refusal):
        FakeFlink(answers).rest.cancel("new")


@pytest.mark.parametrize(
    ("others", "free_at", "waited"),
    [([], 4.0, 4.0), (["other"], 1.0, 1.0), (["other"], 100.0, 10.0)],
)
def test_the_release_of_slots_of_an_ended_job_is_awaited(monkeypatch, others, free_at, waited):
    """Each TaskManager is asked until it is free, and then the next one; other jobs keep theirs."""
    clock, devices = Clock(0.0), [f"dev-{i}" for i in range(100)]
    monkeypatch.setattr(client, "time", clock)

    def slots():
        held = others if clock.now >= free_at else [*others, "gone"]
        return {"allocatedSlots": [{"jobId": name} for name in held]}

    flink = FakeFlink(healthy(*devices))
    flink.answers |= {f"GET /taskmanagers/{device}": slots for device in devices}
    flink.answers["GET /jobs"] = jobs({"gone": "CANCELED"} | dict.fromkeys(others, "RUNNING"))
    for row in flink.answers["GET /taskmanagers"]["taskmanagers"]:
        row["freeResource"] = {"managedMemory": 0}
    flink.rest.wait_released()
    assert clock.now == pytest.approx(waited, abs=0.3)
    asked = flink.requests("GET")
    assert len(asked) <= len(devices) + 3 + waited / client.POLL_SECONDS
    if waited == free_at:
        assert asked[-100:] == [f"/taskmanagers/{device}" for device in devices]


TLS = Path(__file__).parent / "tls"
"""Made for these tests: who certifies, the server at 127.0.0.1, a client; for a hundred years."""
CLIENT = {"cert": str(TLS / "client.pem"), "key": str(TLS / "client.key")}
AUTHORITY = {"cacert": str(TLS / "authority.pem")}
COMMANDS = (["cluster"], ["cancel", "--job", "another"])


@pytest.fixture
def secured():
    """A server that answers only those who are certified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem")
    context.load_verify_locations(TLS / "authority.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with FakeFlink(ANSWERS).served(partial(context.wrap_socket, server_side=True)) as flink:
        flink.url = flink.url.replace("http:", "https:")
        yield flink


@pytest.mark.parametrize("files", [AUTHORITY | CLIENT, CLIENT, AUTHORITY])
def test_certificates_are_shown_and_checked(run, secured, files, tmp_path):
    """Those of an authority of one's own; who is not certified gets nothing."""
    answer = run("flink", "cluster", "--rest", secured.url, *settings_file(tmp_path, **files))
    if len(files) == 3:
        assert answer.status == 0, answer.err
        assert 'name = "dev-0"' in answer.out
    else:
        assert answer.status == 2
        assert "no Flink answers at https://127.0.0.1" in answer.err
        assert secured.asked == []


@pytest.mark.parametrize(
    ("source", "text", "sent"),
    [
        ("file", "Bearer s3cret.token\n", "Bearer s3cret.token"),
        ("environment", "me:s3cret", "Basic " + b64encode(b"me:s3cret").decode()),
    ],
)
def test_authorization_is_sent_and_never_shown(run, source, text, sent, tmp_path, monkeypatch):
    """Neither by a command that succeeds nor by one that fails."""
    (tmp_path / "secret").write_text(text)
    if source == "environment":
        monkeypatch.setenv("STREAMPLACE_FLINK_AUTHORIZATION", text)
    given = ("--authorization", "secret") if source == "file" else ()
    with FakeFlink(ANSWERS).served() as flink:
        message = [run("flink", *what, "--rest", flink.url, *given) for what in COMMANDS]
    assert [answer.status for answer in message] == [0, 2], message
    assert flink.asked
    assert {headers["Authorization"] for headers in flink.headers} == {sent}
    assert "s3cret" not in "".join(answer.out + answer.err for answer in message)
    assert "s3cret" not in repr(Access(authorization=text))


def test_a_replaced_token_is_read_again(tmp_path):
    """Tokens expire while a watch goes on; while the file is gone, the last one counts."""
    file = tmp_path / "token"
    file.write_text("Bearer one")
    with FakeFlink(ANSWERS).served() as flink:
        rest = Rest(flink.url, access=Access(authorization="Bearer one", authorized_by=file))
        rest.jobs()
        file.write_text("Bearer two")
        rest.jobs()
        file.unlink()
        rest.jobs()
    sent = [headers["Authorization"] for headers in flink.headers]
    assert sent == ["Bearer one", "Bearer two", "Bearer two"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"cacert": "none.pem"}, "none.pem: "),
        ({"cacert": str(TLS / "client.key")}, "client.key: "),
        ({"cert": str(TLS / "client.pem")}, "client.pem: "),
        (AUTHORITY | {"rest": "http://127.0.0.1:1"}, "https://"),
        ({"key": "k.pem"}, "key"),
        (CLIENT | {"key": str(TLS / "locked.key")}, "password"),
        ({"authorization": "none"}, "none: "),
        ({"authorization": str(TLS / "client.key")}, "'Bearer TOKEN' or 'NAME:PASSWORD'"),
    ],
)
def test_unusable_files_of_access_are_refused(refusal, files, message, tmp_path):
    """Nobody is asked for a password."""
    given = settings_file(tmp_path, **({"rest": "https://127.0.0.1:1"} | files))
    assert message in refusal("flink", "cluster", *given)


def test_a_missing_authorization_has_a_remedy(refused_by):
    """A gateway answers with a page of its own."""
    page = said(b"<html><title>401 Authorization Required</title></html>", 401)
    refused = refused_by(otherwise=page)
    assert "401 Authorization Required" in refused
    assert "--authorization" in refused


def test_a_stream_without_a_strategy_is_one_of_a_plan():
    """Flink 2 writes null for it, and also joins two tasks by several streams."""
    document = job("shop", "RUNNING", dict.fromkeys(("src", "end"), "RUNNING"))
    inputs = [{"id": "src", "ship_strategy": kind} for kind in (None, "HASH")]
    plan = {"nodes": [{"id": "src"}, {"id": "end", "inputs": inputs}]}
    _, _, edges = read_plan(FakeFlink({"GET /jobs/1": document | {"plan": plan}}).rest, "1")
    assert [edge.partitioning for edge in edges] == ["rebalance", "hash"]
