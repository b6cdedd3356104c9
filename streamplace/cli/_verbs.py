"""Commands of verbs: what is typed becomes a request, whose answer is printed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from streamplace.cli._command import verb
from streamplace.cli._options import (
    AS_JSON,
    check_output,
    spare_inputs,
    spare_others,
    writes_of,
)
from streamplace.cli._output import (
    counted,
    print_json,
    print_line,
    print_report,
    say,
    say_written,
    verbose,
    waiting,
    with_command,
)
from streamplace.cli._settings import simulated
from streamplace.settings.shared import ObjectiveOptions
from streamplace.settings.verb import Progress, Verb, Written

MAX_REPORTED = 20
"""Failed graphs that are reported at once."""


class Terminal(Progress):
    """Prints what a verb tells, and its answer."""

    def __init__(self) -> None:
        self._hints: list[tuple[Callable[[str], None], str]] = []
        self._failed: dict[str, None] = {}

    say = staticmethod(say)
    waiting = staticmethod(waiting)
    check_kind = staticmethod(check_output)
    spare_inputs = staticmethod(spare_inputs)
    spare_others = staticmethod(spare_others)

    def hint(self, message: str) -> None:
        """Print a message after the report, if there is one."""
        self._hints.append((say, message))

    def suggest(self, line: str) -> None:
        """Print a line below the report, if there is one."""
        self._hints.append((print_line, line))

    def failed(self, graph: str, reason: str) -> None:
        """Count a failed graph; the first ones are reported at once."""
        self._failed[graph] = None
        if len(self._failed) <= MAX_REPORTED:
            say(f"failed: {graph}: {reason}")

    def show(self, request: Verb, answer: Any, *, as_json: bool) -> int:
        """Write, and print as a document or as a report, what a verb answers."""
        path: Path | None = getattr(request, "out", None)
        noun = ""
        if isinstance(answer, Written):
            if as_json:
                print_json(answer.facts)
            for sentence in () if as_json else answer.sentences:
                say(sentence)
        else:
            if (
                path is not None
                and path.suffix == ".html"
                and isinstance(request, ObjectiveOptions)
            ):
                page = getattr(answer, "page", answer.report)()
                graph = request.inputs["graph"]
                with_command(page, graph, simulated(request)).save(path)
                noun = "report"
            elif path is not None:
                noun = answer.write(path)
            print_json(answer.to_json()) if as_json else print_report(answer.report())
        for tell, line in () if as_json else self._hints:
            tell(line)
        if path is not None and noun:
            say_written(noun, path)
        if self._failed:
            say(f"{counted(len(self._failed), 'graph')} failed")
        return 1 if self._failed else request.status(answer)


def command_of(model: type[Verb], name: str, summary: str, example: str) -> click.Command:
    """Command that runs a verb and prints what it answers."""

    def run(settings: Verb, as_json: bool) -> int:
        progress = Terminal()
        try:
            answer = settings.run(progress)
        except KeyboardInterrupt:
            for line in settings.when_stopped():
                say(line)
            raise
        return progress.show(settings, answer, as_json=as_json)

    run.__doc__ = model.__doc__
    return verb(name, summary, example, settings=model)(AS_JSON(writes_of(model)(verbose(run))))
