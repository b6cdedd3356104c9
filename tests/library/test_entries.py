"""Every entry of datasets/library is accepted by the checker, and nothing that was altered is."""

import copy
import json
import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import check
import check_search
import pytest

LIBRARY = Path(__file__).parents[2] / "datasets/library"
LINES = [json.loads(line) for line in (LIBRARY / "best.jsonl").read_text().splitlines()]
NODES = 200
"""Nodes of a search among altered certificates: what needs more is refused as well."""


def files_of(line: dict[str, Any]) -> list[Path]:
    folder, objective = LIBRARY / line["instance"], line["objective"]
    kinds = ("solution", "certificate")
    return [folder / "instance.json", *(folder / f"{objective}.{kind}.json" for kind in kinds)]


def printed(paths: list[Path], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and the one line that the checker prints."""
    status = check.main([str(path) for path in paths])
    (line,) = capsys.readouterr().out.splitlines()
    return status, line


def assert_accepted(line: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(files_of(line), capsys)
    assert status == 0, text
    verdict, objective, value = text.split()[:3]
    assert (verdict, objective) == ("accepted:", line["objective"])
    assert float(value) == pytest.approx(line["value"], rel=1e-10)
    assert ("gap 0.000%" in text) or not line["closed"]


SMALL = sorted(LINES, key=lambda line: sum(path.stat().st_size for path in files_of(line)))[:55]
"""Entries that are altered: those with the smallest files."""


@pytest.mark.parametrize("line", LINES[:: len(LINES) // 10], ids=lambda line: line["instance"])
def test_a_sample_is_accepted(line: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert_accepted(line, capsys)


def test_every_entry_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    for line in LINES:
        assert_accepted(line, capsys)


def test_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((LIBRARY / "manifest.json").read_text())
    for name, digest in manifest["sha256"].items():
        assert sha256((LIBRARY / name).read_bytes()).hexdigest() == digest, name
    assert {line["instance"] for line in LINES} == set(manifest["instances"])
    assert len(manifest["instances"]) >= 60
    assert sum(path.stat().st_size for path in LIBRARY.rglob("*.json*")) <= 5 * 2**20


def altered_solutions(solution: dict[str, Any], draw: random.Random) -> Iterator[dict[str, Any]]:
    """Solutions that are wrong: other values, illegal placements, contradictory orders."""
    for factor in (1 + 1e-8, 1 - 1e-8, 1.01, 0.5, -1.0):
        yield solution | {"value": solution["value"] * factor}
    name, device = draw.choice(list(solution["assignment"].items()))
    assignment = solution["assignment"]
    yield solution | {"assignment": {k: d for k, d in assignment.items() if k != name}}
    yield solution | {"assignment": assignment | {name: "no such device"}}
    yield solution | {"assignment": assignment | {"no such operator": device}}
    yield solution | {"objective": "latency"}
    yield solution | {"value": str(solution["value"])}
    yield solution | {"more": 1}
    if "priority" in solution:
        yield solution | {"priority": dict.fromkeys(assignment, 1)}
        yield solution | {"priority": {k: -x for k, x in solution["priority"].items()}}
        yield solution | {"queue": "fifo"}


def altered_certificates(certificate: dict[str, Any], sign: int) -> Iterator[dict[str, Any]]:
    """Certificates that prove less than they state, or nothing."""
    bound, proof = certificate["bound"], certificate["proof"]
    for factor in (1e-6, 1e-3, 0.3):
        yield certificate | {"bound": bound * (1 - sign * factor)}
    yield certificate | {"bound": -bound}
    yield certificate | {"objective": "makespan" if sign > 0 else "throughput"}
    yield certificate | {"proof": proof | {"kind": "no such kind"}}
    yield certificate | {"proof": proof | {"more": 1}}
    yield certificate | {"proof": {}}
    for key, value in proof.items():
        if key in ("order", "weights", "operators"):
            yield (
                certificate
                | {"proof": proof | {key: [*value, *value[:1]]}}
                | ({} if key != "operators" else {"bound": bound * 2})
            )
            yield (
                certificate
                | {"proof": proof | {key: value[1:]}}
                | ({} if key != "operators" else {"bound": bound * 2})
            )
            yield certificate | {"proof": proof | {key: []}}
        if key == "weights":
            yield certificate | {"proof": proof | {key: [0] * len(value)}}
            yield certificate | {"proof": proof | {key: [-x for x in value]}}
        if key == "multipliers":
            yield certificate | {"proof": proof | {key: [[*m[:-1], -m[-1]] for m in value]}}
            yield certificate | {"proof": proof | {key: [[*m[:-1], 1.01 * m[-1]] for m in value]}}
            yield certificate | {"proof": proof | {key: []}, "bound": bound / 2}
        if key == "messages" and value:
            yield certificate | {"proof": proof | {key: [*value, value[0]]}}


def test_altered_solutions_and_certificates_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_search, "NODES", NODES)
    draw, count = random.Random(0), 0
    paths = [tmp_path / name for name in ("instance.json", "solution.json", "certificate.json")]
    for line in SMALL:
        documents = [json.loads(path.read_text()) for path in files_of(line)]
        sign = 1 if line["objective"] == "throughput" else -1
        for position, altered in (
            *((1, s) for s in altered_solutions(documents[1], draw)),
            *((2, c) for c in altered_certificates(documents[2], sign)),
        ):
            tried = copy.copy(documents)
            tried[position] = altered
            for path, document in zip(paths, tried, strict=True):
                path.write_text(json.dumps(document))
            status, text = printed(paths, capsys)
            assert status == 1, (line, altered, text)
            count += 1
    assert count >= 1000


def spoiled(content: bytes, draw: random.Random) -> bytes:
    """Content with a few bytes replaced, repeated, cut or nested."""
    at, width = draw.randrange(len(content)), draw.randrange(1, 40)
    return draw.choice(
        [
            content[:at],
            content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :],
            content[:at] + content[at : at + width] * draw.randrange(2, 9) + content[at + width :],
            content[:at] + b"9" * 5000 + content[at:],
            content[:at] + b"1e999" + content[at + width :],
            content[:at] + b"[" * 100_000 + content[at:],
            content.replace(b"1", b"-1", draw.randrange(1, 9)),
            content.replace(b'"d', b'"\\u001b[2Jd', 1),
        ]
    )


def test_spoiled_files_are_answered_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_search, "NODES", NODES)
    draw = random.Random(1)
    paths = [tmp_path / name for name in ("instance.json", "solution.json", "certificate.json")]
    for _ in range(500):
        for path, source in zip(paths, files_of(draw.choice(SMALL)), strict=True):
            path.write_bytes(source.read_bytes())
        target = draw.choice(paths)
        target.write_bytes(spoiled(target.read_bytes(), draw))
        status, text = printed(paths, capsys)
        assert status in (0, 1)
        assert text.isascii()
        assert text.isprintable()
        assert len(text) <= 400
