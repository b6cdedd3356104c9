"""Tables for papers, in LaTeX with the package booktabs."""

from collections.abc import Iterable

from streamplace.display.report import Bar, Cell, Names, Sheet

SPECIAL = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "×": r"$\times$",
    "—": "---",
    "µ": r"$\mu$",
    "●": r"$\bullet$",
}


def latex_table(sheet: Sheet, title: str = "") -> str:
    r"""Table of texts; the first columns, with the names of rows, are aligned left.

    >>> print(latex_table(Sheet(("placer", "of_best"), (("metis:k=3", "98 %"),))))
    \begin{tabular}{lr}
    \toprule
    placer & of\_best \\
    \midrule
    metis:k=3 & 98 \% \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    left = sheet.names + 1
    rows = [_row(map(_text, cells)) for cells in sheet.rows]
    lines = [
        *([f"% {title}"] if title else []),
        rf"\begin{{tabular}}{{{'l' * left}{'r' * (len(sheet.head) - left)}}}",
        r"\toprule",
        _row(sheet.head),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _row(texts: Iterable[str]) -> str:
    return " & ".join("".join(SPECIAL.get(char, char) for char in text) for text in texts) + r" \\"


def _text(cell: Cell) -> str:
    if isinstance(cell, Bar):
        return f"{cell.load:.3g}"
    return cell.text() if isinstance(cell, Names) else cell
