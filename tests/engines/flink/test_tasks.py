import pytest

from streamplace.engines.flink.tasks import members


@pytest.mark.parametrize(
    ("task", "known", "expected"),
    [
        ("Source: lines", (), ["lines"]),
        ("a -> b", (), ["a", "b"]),
        ("a -> (b -> c, d)", (), ["a", "b", "c", "d"]),
        (
            "Source: a -> (b, c -> out: Writer -> out: Committer)",
            (),
            ["a", "b", "c", "out", "out: Committer"],
        ),
        ("Source: to, fro -> x", ("to, fro", "x"), ["to, fro", "x"]),
        ("f(x) -> g", ("f(x)", "g"), ["f(x)", "g"]),
    ],
)
def test_fused_operators_are_read_from_the_name_of_their_task(
    task: str, known: tuple[str, ...], expected: list[str]
) -> None:
    """What Flink puts around names goes; names that are known may hold anything."""
    assert members(task, known) == expected
