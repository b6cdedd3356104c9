"""Jobs that are placed together: one graph of them, and a placement for each again."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import healthy

from streamplace.engines.flink.measure.cluster import measured_cluster
from streamplace.engines.flink.pin.pinning import read_vectors


def written(folder: Path, file: str, name: str, **facts: Any) -> None:
    """A job of a source and three subtasks that spend a millisecond of 1000 MIPS per tuple."""
    operators = [{"name": "in", "rate": 1000}, {"name": "map", "ipt": 1e6, "parallelism": 3}]
    attributes = {"mips": 2500.0, "unmeasured": "rate of in: x", "cpu of map": "busy"}
    document = {"name": name, "operators": operators, "streams": [{"from": "in", "to": "map"}]}
    (folder / file).write_text(json.dumps(document | {"attributes": attributes | facts}))


def test_jobs_are_placed_together_and_each_gets_its_own_placement(
    run: Callable, tmp_path: Path
) -> None:
    """Under the names that it knows, with the numbers of its subtasks."""
    written(tmp_path, "a.json", "shop")
    written(tmp_path, "b.json", "Fraud watch")
    answer = run("flink", "union", "a.json", "b.json", "-o", "both.json")
    assert answer.status == 0, answer.err
    both = json.loads((tmp_path / "both.json").read_text())
    other = next(row["name"] for row in both["operators"] if "fraud-watch" in row["name"])
    job = other.partition("/")[0]
    assert [row["name"] for row in both["operators"]] == [
        "shop/in",
        "shop/map",
        f"{job}/in",
        f"{job}/map",
    ]
    assert both["attributes"] == {
        "mips": 2500.0,
        "unmeasured": f"shop: rate of in: x; {job}: rate of in: x",
        "cpu of shop/map": "busy",
        f"cpu of {job}/map": "busy",
    }
    dealt = ("--placer", "round-robin", "--devices", "3")
    assert run("place", "both.json", *dealt, "--subtasks", "-o", "p.json").status == 0
    assert run("flink", "split", "p.json", "-o", "parts").status == 0
    assignment = json.loads((tmp_path / "p.json").read_text())["assignment"]
    for name in ("shop", job):
        assert read_vectors(tmp_path / "parts" / f"{name}.json") == {
            "in": [assignment[f"{name}/in"]],
            "map": [assignment[f"{name}/map#{i}"] for i in range(3)],
        }


def test_a_union_of_measured_jobs_is_as_well_measured_as_the_worst_of_them(
    run: Callable, tmp_path: Path
) -> None:
    """So its predictions have intervals, and a profile that contradicts itself is refused."""
    good: dict[str, Any] = {"profile windows": 4, "profile spread": 0.01, "consistency error": 0.1}
    bad: dict[str, Any] = {"profile windows": 2, "profile drift": 0.2, "consistency error": -0.7}
    written(tmp_path, "a.json", "shop", **good)
    written(tmp_path, "b.json", "pay", **bad | {"consistency culprit": "map"})
    written(tmp_path, "c.json", "drawn")
    assert run("flink", "union", "a.json", "b.json", "-o", "both.json").status == 0
    found = json.loads((tmp_path / "both.json").read_text())["attributes"]
    assert {name: found[name] for name in (*good, "profile drift", "consistency culprit")} == {
        "profile windows": 2,
        "profile spread": 0.01,
        "profile drift": 0.2,
        "consistency error": -0.7,
        "consistency culprit": "pay/map",
    }
    answer = run("place", "both.json", "--devices", "2")
    assert (answer.status, "off by -70%" in answer.err) == (2, True)
    assert run("flink", "union", "a.json", "c.json", "-o", "drawn.json").status == 0
    drawn = json.loads((tmp_path / "drawn.json").read_text())["attributes"]
    assert "profile windows" not in drawn


def test_a_weight_is_a_jobs_part_of_what_can_be_carried(run: Callable, tmp_path: Path) -> None:
    """A device of 1000 MIPS carries one of two jobs: three quarters of one, a quarter of the other.

    Of the weighted rates, 3000 and 1000 tuples/s, it carries a quarter.
    """
    written(tmp_path, "a.json", "shop")
    answer = run("flink", "union", "a.json", "a.json", "--weight", "shop=3", "-o", "both.json")
    assert answer.out == ""
    one = ("--devices", "1", "--mips", "1000")
    dealt = ("--placer", "round-robin", *one)
    assert run("place", "both.json", *dealt, "-o", "p.json").status == 0
    answer = run("simulate", "both.json", "p.json", *one, "--json")
    assert json.loads(answer.out)["relative_throughput"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--weight", "shop"), "--weight shop: write JOB=NUMBER"),
        (("--weight", "shop=0"), "write JOB=NUMBER with a number above 0"),
        (("--weight", "shop=nan"), "write JOB=NUMBER with a number above 0"),
        (("--weight", "shop=2", "--weight", "shop=3"), "is given twice for 'shop'; drop one"),
        (("--weight", "cart=2"), "'cart' is not one of the jobs; they are 'shop', 'shop-2'"),
        (("c.json",), "measured with different --mips; profile them with the same value"),
    ],
)
def test_what_cannot_be_united_is_refused(
    refusal: Callable, tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    """In one line, and nothing is written."""
    written(tmp_path, "a.json", "shop")
    written(tmp_path, "c.json", "cart", mips=1000.0)
    files = ("a.json", more[0]) if len(more) == 1 else ("a.json", "a.json", *more)
    assert told in refusal("flink", "union", *files, "-o", "both.json")


def test_a_placement_of_one_job_cannot_be_split(refusal: Callable, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"assignment": {"shop/in": "d0", "map": "d1"}}')
    refused = refusal("flink", "split", "p.json", "-o", "parts")
    assert "operator 'map' belongs to no job" in refused


def test_what_jobs_take_that_stay_is_reserved() -> None:
    """Beside what Java takes, where that is measured."""
    rest = FakeFlink(healthy("dev-0", "dev-1")).rest
    texts = [
        measured_cluster(rest, "2000", "1 Gbps", java, beside={"dev-1": 0.5}).as_toml()
        for java in (None, 0.1)
    ]
    reserved = [[row["reserved"] for row in tomllib.loads(text)["devices"]] for text in texts]
    assert reserved == [[0, 1000], [200, 1200]]


def test_splitting_writes_over_no_placement_that_it_reads(
    refusal: Callable, tmp_path: Path
) -> None:
    """A job may bear the name of the file."""
    (tmp_path / "p.json").write_text('{"assignment": {"p/in": "d0", "p/map": "d1"}}')
    refused = refusal("flink", "split", "p.json", "-o", ".")
    assert "-o would overwrite the input p.json" in refused
