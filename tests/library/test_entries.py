"""Entries of datasets/library are accepted by the checker, and nothing that was altered is."""

import json
from hashlib import sha256
from pathlib import Path

import check
import pytest

LIBRARY = Path(__file__).parents[2] / "datasets/library"
LINES = [json.loads(line) for line in (LIBRARY / "best.jsonl").read_text().splitlines()]
NODES = 200
"""Nodes of a search among altered certificates: what needs more is refused as well."""
KINDS = ("throughput", "makespan", "plan")


def files_of(line):
    folder, objective = LIBRARY / line["instance"], line["objective"]
    kinds = ("solution", "certificate")
    return [folder / "instance.json", *(folder / f"{objective}.{kind}.json" for kind in kinds)]


def printed(paths, capsys):
    """Exit status and the one line that the checker prints."""
    status = check.main([str(path) for path in paths])
    (line,) = capsys.readouterr().out.splitlines()
    return status, line


def assert_accepted(line, capsys):
    status, text = printed(files_of(line), capsys)
    assert status == 0, text
    verdict, objective, value = text.split()[:3]
    assert (verdict, objective) == ("accepted:", line["objective"])
    assert float(value) == pytest.approx(line["value"], rel=1e-10)
    assert ("gap 0.000%" in text) or not line["closed"]


SMALL = [
    line
    for kind in KINDS
    for line in sorted(
        (line for line in LINES if line["objective"] == kind and line["closed"]),
        key=lambda line: sum(path.stat().st_size for path in files_of(line)),
    )[:9]
]
"""Entries that are altered: those of each class with the smallest files."""


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_is_accepted(kind, step, capsys):
    """A ninth of them in the quick tests; the digests below hold for all."""
    for line in [line for line in LINES if line["objective"] == kind][::step]:
        assert_accepted(line, capsys)


def test_files_are_those_of_the_manifest():
    manifest = json.loads((LIBRARY / "manifest.json").read_text())
    for name, digest in manifest["sha256"].items():
        assert sha256((LIBRARY / name).read_bytes()).hexdigest() == digest, name
    assert {line["instance"] for line in LINES} == set(manifest["instances"])
    assert len(manifest["instances"]) >= 300
    assert sum(line["objective"] == "plan" for line in LINES) >= 40
    assert sum(line["closed"] for line in LINES) >= 0.85 * len(LINES)
    assert sum(path.stat().st_size for path in LIBRARY.rglob("*.json*")) <= 25 * 2**20


def altered_solutions(solution):
    """Solutions that are wrong: other devices, missing operators, contradictory orders."""
    for key in ("place", "order", "machines"):
        if key in solution:
            line = solution[key]
            yield {name: x for name, x in solution.items() if name != key}
            yield solution | {key: line[1:]}
            yield solution | {key: [*line, line[0]]}
            yield solution | {key: [999, *line[1:]]}
            yield solution | {key: [-1, *line[1:]]}
            yield solution | {key: [str(line[0]), *line[1:]]}
            yield solution | {key: [0.5, *line[1:]]}
            yield solution | {key: "none"}
    if "order" in solution:
        yield solution | {"order": [solution["order"][0], *solution["order"][:-1]]}
    if "machines" in solution:
        (kind, contents), *rest = solution["machines"]
        yield {"machines": [[kind, contents[1:]], *rest]}
        yield {"machines": [[kind, [[v, a + 1] for v, a in contents]], *rest]}
        yield {"machines": [[99, contents], *rest]}
        yield {"machines": [[kind, [[-1, a] for v, a in contents]], *rest]}


def altered_certificates(certificate, sign):
    """Certificates that state a better bound than there is, or prove nothing."""
    bound, proof = check.Fraction(certificate["bound"]), certificate["proof"]
    for factor in ("1e-9", "1e-6", "0.001", "0.3"):
        better = bound * (1 - sign * check.Fraction(factor))
        yield certificate | {"bound": f"{better.numerator}/{better.denominator}"}
    for wrong in (-1, "", "nan", [], "1e5", "1/0", True, 0.5 * float(bound) if sign > 0 else 1e300):
        yield certificate | {"bound": wrong}
    yield certificate | {"proof": {}}
    yield certificate | {"proof": []}
    for key, line in proof.items():
        for changed in ([-1], 7, None, "", line[1:], [*line, line[0]], [*line[1:], None]):
            yield certificate | {"proof": proof | {key: changed}}
        yield certificate | {"proof": {name: x for name, x in proof.items() if name != key}}
    if "order" in proof and len(proof["order"]) > 1:
        yield certificate | {"proof": proof | {"order": [proof["order"][1], *proof["order"][1:]]}}
    if "worth" in proof:
        yield certificate | {"proof": proof | {"worth": [0 for _ in proof["worth"]]}}
        yield certificate | {"proof": proof | {"worth": [-w for w in proof["worth"]]}}
        for changed in ({}, {"cpu": -1}, {"disk": 1}, {"cpu": 0.5}, {"cpu": None}):
            weights = [changed for _ in proof["weights"]]
            yield certificate | {"proof": proof | {"weights": weights}}


def test_altered_solutions_and_certificates_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(check, "NODES", NODES)
    count = 0
    paths = [tmp_path / name for name in ("instance.json", "solution.json", "certificate.json")]
    for line in SMALL:
        documents = [json.loads(path.read_text()) for path in files_of(line)]
        sign = 1 if line["objective"] == "throughput" else -1
        for path, document in zip(paths, documents, strict=True):
            path.write_text(json.dumps(document))
        for position, altered in (
            *((1, s) for s in altered_solutions(documents[1])),
            *((2, c) for c in altered_certificates(documents[2], sign)),
        ):
            paths[position].write_text(json.dumps(altered))
            status, text = printed(paths, capsys)
            assert status == 1, (line, altered, text)
            paths[position].write_text(json.dumps(documents[position]))
            count += 1
    assert count >= 1000
