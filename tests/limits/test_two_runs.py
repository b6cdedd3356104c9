"""Two runs into one folder at once: one of them is refused in one line, and nothing is mixed."""

import pytest

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
def test_the_second_is_refused(run, tmp_path, words, file):
    """While the first holds its file; when that is over, it runs."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    with appending(tmp_path / file, b""):
        answer = run(*words.split())
    assert answer.status == 2
    assert answer.err.startswith(f"error: {file}: another process is adding results to it")
    assert answer.err.count("\n") == 1
    assert (tmp_path / file).stat().st_size == 0
    assert run(*words.split()).status == 0


def test_a_folder_is_trained_into_by_one_process(run, tmp_path):
    """A second run is refused, be it new or gone on with, until the first has ended."""
    words = ["train", "hdp", "--data", "b.jsonl", "--epochs", "1", "--out", "h"]
    (tmp_path / "h").mkdir()
    for again in ([], ["--resume"]):
        with claim_folder(tmp_path / "h"):
            answer = run(*words, *again)
        assert answer.status == 2
        assert answer.err.startswith("error: h: another process is training into it; wait until")
        assert answer.err.count("\n") == 1
        assert not list((tmp_path / "h").glob("history.jsonl")) or again
        assert run(*words, *again).status == 0
