from collections.abc import Callable
from pathlib import Path

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
GRAPH = "generate branched --branches 3 --depth 4 --devices 3 --copies 1 --seed 7 -o graph.json"


def test_the_pictures_of_the_tutorial_are_what_its_commands_draw(
    run: Callable, tmp_path: Path
) -> None:
    """Byte for byte; a change of the style draws them again."""
    run(*GRAPH.split())
    for placer, file in (("round-robin", "first.json"), ("metis-oracle", "placement.json")):
        assert run("place", "graph.json", "--placer", placer, "-o", file).status == 0
    for picture, files in (
        ("drawing.svg", ("first.json", "placement.json")),
        ("placement.svg", ("placement.json",)),
    ):
        assert run("draw", "graph.json", *files, "-o", picture).status == 0
        assert (tmp_path / picture).read_text() == (ASSETS / picture).read_text()
