"""``streamplace flink advise``, and jobs and rates for which no advice is given."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import ANSWERS, FakeFlink
from lazy_flink import Clock, Shop, advised

from streamplace.errors import SettingError, StreamplaceError
from streamplace.planning.offers import Catalogue, Offer

OFFERS_TOML = '[[offers]]\nname = "dev"\nprice = 0.1\nmips = 2500\ncores = 2\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with offers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offers.toml").write_text(OFFERS_TOML)
    (tmp_path / "c.toml").write_text('devices = [{name = "dev-0"}]\n')
    return tmp_path


@pytest.fixture
def asked(folder: Path, clock: Clock) -> Iterator[tuple[str, ...]]:
    """Words of the command, for a job on a cluster that is served."""
    with FakeFlink(ANSWERS).served() as flink:
        given = ("--offers", "offers.toml", *settings_file(folder, seconds=2))
        yield ("flink", "advise", "--rest", flink.url, *given)


def test_commands_name_the_folder_that_the_plan_is_written_to(
    folder: Path, run: Callable[..., Any], asked: tuple[str, ...]
) -> None:
    printed = run(*asked, "--rate", "5e3", "--budget", "1", "-o", "my plans/one")
    assert "with the files that -o my plans/one/ writes" in " ".join(printed.out.split())
    assert "--cluster 'my plans/one/cluster.toml'" in printed.out
    assert "--placement 'my plans/one/placement.json'" in printed.out
    assert (folder / "my plans/one/cluster.toml").exists()


@pytest.mark.slow
def test_the_command_prints_advice_and_writes_the_plan(
    folder: Path, run: Callable[..., Any], asked: tuple[str, ...]
) -> None:
    """One JSON document; the placement is one for the planned cluster."""
    document = json.loads(run(*asked, "--rate", "2x", "-o", "plan", "--json").out)
    printed = run(*asked, "--rate", "1000")
    assert document["rate"] == pytest.approx(2 * document["offered"])
    assert document["current"]["machines"] == {"dev": 1}
    assert document["plan"] == json.loads((folder / "plan/plan.json").read_text())
    simulated = ("plan/graph.json", "plan/placement.json", "--cluster", "plan/cluster.toml")
    carried = json.loads(run("simulate", *simulated, "--json").out)
    assert carried["relative_throughput"] == pytest.approx(1.0)
    assert "Today: 1 machine that cost 0.1 per hour; " in printed.out
    assert "notes on what is not known" in printed.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "0x", "--offers", "offers.toml"), "it must be above 0"),
        (("--rate", "fast", "--offers", "offers.toml"), "rate 'fast'"),
        (("--rate", "2x", "--offers", "offers.toml", "--cluster", "c.toml"), "exclude"),
        (("--rate", "2x", "--offers", "no.toml"), "no.toml"),
        (("--rate", "2x", "--rest", "http://127.0.0.1:1"), "no Flink answers"),
    ],
)
def test_bad_input_is_refused_with_its_message(
    folder: Path, refusal: Callable[..., str], options: tuple[str, ...], message: str
) -> None:
    assert message in refusal("flink", "advise", *options)


def test_back_pressure_hides_the_rate_that_is_multiplied(shop: Shop) -> None:
    """A multiple is refused; a rate is planned for, and the unknown is named."""
    with pytest.raises(SettingError, match=r"'src' may be offered more.*give --rate in tuples/s"):
        advised(shop(blocked=1.0))
    advice = advised(shop(blocked=1.0), "200")
    assert advice.flow.offered is None
    text = " ".join(str(advice).split())
    assert "an unknown rate offered (it is back-pressured 50 % of the time)" in text


@pytest.mark.parametrize(
    ("rate", "facts"),
    [
        *((rate, {}) for rate in ("0", "-1", "2xx", "x", "1e99x", "nan")),
        ("2x", {"mips": "fast"}),
        ("2x", {"bandwidth": "1 Gbit per second"}),
    ],
)
def test_rates_and_speeds_that_are_none_are_refused_before_anything_is_asked(
    shop: Shop, rate: str, facts: dict[str, Any]
) -> None:
    """Not after the minutes for which the job is watched."""
    flink = shop()
    with pytest.raises(StreamplaceError):
        advised(flink, rate, None, **facts)
    assert flink.asked == []


def test_a_rate_that_nothing_carries_is_refused(shop: Shop) -> None:
    """The message names the largest rate."""
    offers = Catalogue.of([Offer("small", 0.1, at_most=1)])
    with pytest.raises(StreamplaceError, match="a plan was found for up to"):
        advised(shop(), "100x", offers)
