"""Two runs into one folder at once: one of them is refused in one line, and nothing is mixed."""

import pytest
from rooms import needs_papers

from streamplace.io.files import appending, claim_folder

GENERATE = "generate branched --branches 2 --depth 2 --devices 2 --copies"


@pytest.fixture(autouse=True)
def data(run):
    """Six graphs."""
    assert run(*f"{GENERATE} 6 -o b.jsonl".split()).status == 0


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("place b.jsonl --placer metis -o p.jsonl", "p.jsonl"),
        ("compare b.jsonl --placers metis,single -o r --jobs 1", "r/results.jsonl"),
        (f"{GENERATE} 6 -o s.jsonl --files 2", "s.manifest.jsonl"),
    ],
)
def test_the_second_is_refused(run, refusal, tmp_path, words, file):
    """While the first holds its file; when that is over, it runs."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    with appending(tmp_path / file, b""):
        line = refusal(*words.split())
    assert line.startswith(f"error: {file}: another process is adding results to it")
    assert run(*words.split()).status == 0


@needs_papers
def test_a_folder_is_trained_into_by_one_process(run, refusal, tmp_path):
    """A second run is refused, be it new or gone on with, until the first has ended."""
    words = ["train", "hdp", "--data", "b.jsonl", "--epochs", "1", "--out", "h"]
    (tmp_path / "h").mkdir()
    for again in ([], ["--resume"]):
        with claim_folder(tmp_path / "h"):
            line = refusal(*words, *again)
        assert line.startswith("error: h: another process is training into it; wait until")
        assert run(*words, *again).status == 0
