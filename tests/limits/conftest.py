"""Files for commands that meet the limits of a machine."""

import shutil
from pathlib import Path

import pytest

from streamplace.cli.main import main

GENERATE = "generate branched --branches 2 --depth 2 --devices 2 --copies"


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with as many graphs as a module wants, one alone, and its placement."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        for words in (
            f"{GENERATE} {request.module.COPIES} -o {folder}/b.jsonl",
            f"{GENERATE} 1 -o {folder}/g.json",
            f"place {folder}/g.json --placer metis -o {folder}/p.json",
        ):
            with pytest.raises(SystemExit) as stop:
                main(words.split())
            assert not stop.value.code
    return folder


@pytest.fixture
def data(made: Path, tmp_path: Path) -> None:
    """Graphs in b.jsonl, and one in g.json with its placement in p.json."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
