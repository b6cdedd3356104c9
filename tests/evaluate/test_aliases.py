from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import chain, diamond

from streamplace.errors import SettingError
from streamplace.evaluate.compare import ComparisonRun, compare
from streamplace.evaluate.records import Record, read_records
from streamplace.evaluate.results import ObjectiveResults
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import AliasedPlacer, aliased_placers
from streamplace.placers.registry import Budget

PROBLEMS = [Problem(graph, Cluster.uniform(3)) for graph in (chain(), diamond())]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A results file that is missing yet."""
    return tmp_path / "results.jsonl"


def records(file: Path | None, *placers: str) -> list[Record]:
    """All records of a comparison of the two problems."""
    comparison = ComparisonRun(placers, budget=Budget(None, 50))
    return [record for row in compare(comparison, PROBLEMS, file, jobs=1) for record in row]


@given(st.from_regex(r"[a-z][a-z0-9 _.-]*[0-9]", fullmatch=True))
def test_what_stands_before_the_first_equals_sign_is_the_alias(alias: str) -> None:
    """Unless a colon comes before it: then it belongs to an option."""
    assert AliasedPlacer.read(f"{alias}=metis:k=3") == (alias, "metis:k=3")
    assert AliasedPlacer.read("metis:k=3") == (None, "metis:k=3")


@pytest.mark.parametrize(
    ("placers", "complaint"),
    [
        (("metis=random",), "the alias 'metis' is the name of a placer"),
        (("fuser-oracle=random",), "the alias 'fuser-oracle' is the name of a placer"),
        (("a=random", "a=metis"), "the alias 'a' is given twice"),
        (("=random",), "has an empty alias"),
    ],
)
def test_an_alias_that_could_be_mistaken_is_refused(
    placers: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SettingError, match=complaint):
        aliased_placers(placers)


def test_a_table_shows_aliases_and_a_result_holds_both_names(file: Path) -> None:
    """The alias for people, the placer for whoever repeats the comparison."""
    saved = records(file, "few=metis:k=2", "metis")
    (table,) = ObjectiveResults(OBJECTIVES["throughput"], saved).columns.values()
    assert list(table) == ["few", "metis"]
    assert {(record.alias, record.placer) for record in read_records(file)} == {
        ("few", "metis:k=2"),
        (None, "metis"),
    }


def test_results_are_reused_whatever_their_aliases(file: Path) -> None:
    """Another placer under the same alias is computed."""
    plain = records(file, "random")
    milliseconds = [record.milliseconds for record in plain]
    before = file.read_bytes()
    named = records(file, "mine=random")
    assert [(r.label, r.milliseconds) for r in named] == [("mine", ms) for ms in milliseconds]
    assert file.read_bytes() == before
    records(file, "mine=metis")
    assert [r.placer for r in read_records(file)] == 2 * ["random"] + 2 * ["metis"]
