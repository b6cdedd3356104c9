"""GiPH on deep-learning graphs: Figure 7 (a) of its paper.

Run ``python benchmarks/giph_enas.py -o out/`` (weights that are in ``out/`` already are not trained
again). Language models of ENAS cells in 40 groups on one network of eight devices, half of them to
train with. Prints mean SLRs over the steps of a walk, and writes them as ``giph-enas.md``.
"""

from functools import partial
from pathlib import Path

from giph import EPOCHS, all_of, searched, table_of_search, weights_of
from studies import Mapped, markdown, output_options, workers_of

from streamplace import Problem
from streamplace.families.registry import FAMILIES
from streamplace.papers.families.enas_ptb import EnasPtb

POLICIES = ("giph", "giph-task-eft", "placeto")
WALKS = ("random", "eft", *POLICIES, "heft")


def problems_of(split: str, count: int) -> list[Problem]:
    """So many problems, spread over the cell designs."""
    every = FAMILIES["enas-ptb"].generate(EnasPtb(), 0)
    chosen = [problem for problem in every if problem.graph.attributes["split"] == split]
    return chosen[:: len(chosen) // count][:count]


def main(folder: Path, count: int, learned: int, epochs: int, by: Mapped) -> None:
    """Train, walk, write and print the table."""
    runs = folder / "enas"
    for name in POLICIES:
        weights_of(runs / name, name, partial(problems_of, "train", learned), epochs)
    problems = problems_of("test", count)
    rows = all_of(partial(searched, names=WALKS, folder=runs), problems, by)
    text = markdown(table_of_search(rows), f"Figure 7 (a): mean SLR, {len(problems)} graphs")
    (folder / "giph-enas.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    options = output_options(
        __doc__,
        problems=(150, "to test with"),
        learned=(150, "to train with"),
        epochs=(EPOCHS, "of every training"),
    ).parse_args()
    main(options.output, options.problems, options.learned, options.epochs, workers_of(options))
