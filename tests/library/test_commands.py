"""``streamplace library``: what it lists, shows and checks, and what it refuses."""

import json

import pytest

from streamplace.errors import FormatError
from streamplace.library import check_files, open_library
from streamplace.library.run_checker import MEMORY, SECONDS


def test_list_has_the_fields_of_every_entry(run, folder):
    document = json.loads(run("library", "list", "--library", str(folder), "--json").out)
    names = [(row["instance"], row["objective"]) for row in document]
    assert sorted(names) == [
        ("giph-11", "makespan"),
        ("random-00", "throughput"),
        ("random-pass-00", "makespan"),
    ]
    for row in document:
        assert row["gap"] == pytest.approx(abs(row["bound"] - row["value"]) / row["value"])
        assert row["closed"] == (row["gap"] < 1e-8)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--class", "random"], 2),
        (["--closed"], 2),
        (["--open"], 1),
        (["--size", "toy"], 2),
        (["--objective", "makespan"], 2),
        (["--class", "giph", "--open"], 1),
    ],
)
def test_list_selects(run, folder, options, count):
    answer = run("library", "list", *options, "--json")
    assert len(json.loads(answer.out)) == count


def test_show_names_value_bound_and_proof(run, folder):
    text = " ".join(run("library", "show", "giph-11").out.split())
    assert "giph-11: " in text
    assert "is the best known value, by streamplace anneal" in text
    assert "Bound: no placement is better than " in text
    assert "gap 2" in text


def test_check_verifies_the_library(run, folder):
    answer = run("library", "check")
    assert (answer.status, answer.out.count("accepted: ")) == (0, 3)
    assert answer.err == "3 checks, 0 refused\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("best.jsonl", '"value": 0.838', '"value": 0.828', "best.jsonl states the value 0.828"),
        ("best.jsonl", '"closed": false', '"closed": true', "calls it closed, but the gap is 2"),
        ("random-00/throughput.solution.json", "}", "}\n", "does not have the checksum"),
    ],
)
def test_check_says_what_it_refuses(run, folder, file, old, new, reason):
    (folder / file).write_text((folder / file).read_text().replace(old, new))
    answer = run("library", "check", "--json")
    assert answer.status == 1
    (refused,) = [row for row in json.loads(answer.out) if not row["accepted"]]
    assert reason in refused["text"]


def test_check_takes_files(run, folder):
    instance, solution, certificate = open_library(folder).files(
        open_library(folder).entry("random-pass-00", "makespan")
    )
    assert run("library", "check", str(instance), str(solution)).status == 0
    for files, fault in (
        ((instance, certificate), certificate),
        ((certificate, solution), certificate),
        ((instance, solution, instance), instance),
    ):
        answer = run("library", "check", *map(str, files))
        assert answer.status == 1
        assert answer.out.startswith(f"refused: {fault}: ")
    result = check_files(instance, solution, certificate)
    assert result.accepted
    assert result.value >= result.bound


def test_a_hidden_split_states_no_seed(run, folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["seed"]
    (folder / "manifest.json").write_text(json.dumps(manifest | {"split": "hidden"}))
    document = json.loads(run("library", "list", "--library", str(folder), "--json").out)
    assert {row["split"] for row in document} == {"hidden"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "random-0"], "'random-00'"),
        (["list", "--class", "rnd"], "'rnd'"),
        (["list", "--size", "tiny"], "toy, easy, medium, hard, open"),
        (["check", "a.json"], "INSTANCE SOLUTION [CERTIFICATE]"),
        (["check", "a.json", "b.json"], "a.json: "),
        (["list", "--library", "nowhere"], "nowhere: "),
        (["list", "--library", "."], "library"),
        (["list", "--objective", "plan"], "no entry"),
    ],
)
def test_bad_input_is_one_line(refusal, folder, words, message):
    assert message in refusal("library", *words)


def test_a_field_that_the_library_does_not_have_is_named(refusal, folder):
    best = folder / "best.jsonl"
    best.write_text(best.read_text().replace('"by"', '"from": 1, "by"', 1))
    assert "best.jsonl:1: from" in refusal("library", "list")


@pytest.mark.parametrize(
    ("content", "seconds", "memory", "message"),
    [
        (b"[" + b"0," * 2**24 + b"0]", SECONDS, 2**27, "MemoryError"),
        (b"[" * 2**16, SECONDS, MEMORY, "RecursionError"),
        (b"{}", 0.001, MEMORY, "takes too long"),
        (b"\x1b[2J\n", SECONDS, MEMORY, "refused"),
    ],
    ids=["long", "deep", "slow", "terminal"],
)
def test_a_check_is_bounded_in_time_and_memory(folder, content, seconds, memory, message):
    instance = open_library(folder).instance_file("random-00")
    file = folder / "hostile.json"
    file.write_bytes(content)
    result = check_files(instance, file, seconds=seconds, memory=memory)
    assert not result.accepted
    assert message in f"refused: {result.text}"
    assert result.text.isprintable()


def test_checks_of_makespans_name_the_unit(run):
    out = run("library", "check", "random-pass-00", "branched-00").out
    assert "makespan 0.000200672363634 s = " in out
    assert "throughput 0.715881106466 = " in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("kinds"), "kinds"),
        (lambda d: d["devices"].append(3), "devices"),
        (lambda d: d["operators"][0].update(work=[1]), "operators"),
        (lambda d: d["streams"].append([5, 1, 8]), "streams"),
        (lambda d: d["links"].pop(), "links"),
        (lambda d: d.update(second=0), "second is 0"),
    ],
)
def test_a_damaged_instance_is_named(folder, change, message):
    file = folder / "random-00" / "instance.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    with pytest.raises(FormatError, match=f"random-00/instance.json: {message}"):
        open_library().problem("random-00")
