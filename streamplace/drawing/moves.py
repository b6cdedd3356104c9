"""What each number of moves from the present placement reaches, as steps of a curve."""

from pathlib import Path

from streamplace.drawing.figures import BLUE, finish, legend_text, panels, save
from streamplace.placers.result import Result


def save_steps(result: Result, path: Path) -> None:
    """Write the curve: dots are proven to be the best of so many moves, circles were found."""
    judge, steps = result.judge, result.steps
    times = 100 if judge.is_share else 1
    figure, (axis,) = panels([""])
    moves, values = [step.moves for step in steps], [times * step.value for step in steps]
    axis.plot(moves, values, color=BLUE, drawstyle="steps-post")
    for is_proven, label, fill in ((True, "proven", BLUE), (False, "found", "none")):
        chosen = [(m, v) for m, v, s in zip(moves, values, steps, strict=True)
                  if s.proven == is_proven]  # fmt: skip
        if chosen:
            axis.plot(
                *zip(*chosen, strict=True), "o", color=BLUE, markerfacecolor=fill, label=label
            )
    axis.set(
        xlabel="operators that move", ylabel=f"{judge.quantity}{', %' if judge.is_share else ''}"
    )
    axis.locator_params("x", integer=True)
    save(finish(figure, f"Moves\n{legend_text(result.problem.graph.name)}"), path)
