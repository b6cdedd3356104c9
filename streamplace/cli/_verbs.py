"""Commands of verbs: the command line becomes a request, and its answer is printed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from streamplace.cli._command import GroupedCommand, simulated, verb
from streamplace.cli._options import AS_JSON, writes_of
from streamplace.cli._output import check_output, reads, spare_inputs, spare_others
from streamplace.cli._printing import (
    counted,
    print_file,
    print_json,
    print_line,
    print_report,
    say,
    say_written,
    verbose,
    waiting,
    with_command,
)
from streamplace.cli._process import SOME_FAILED
from streamplace.settings.verb import Progress, Verb, Written

V = TypeVar("V", bound=Verb)
MAX_REPORTED = 20
"""Failed graphs that are named; the others are counted."""


class Terminal(Progress):
    """Prints the messages of a verb, and its answer."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._hints: list[tuple[Callable[[str], None], str]] = []
        self._failed: dict[str, None] = {}

    say = staticmethod(say)
    waiting = staticmethod(waiting)
    check_kind = staticmethod(check_output)
    reads = staticmethod(reads)
    spare_inputs = staticmethod(spare_inputs)
    spare_others = staticmethod(spare_others)

    def hint(self, message: str) -> None:
        """Print a message after the report; a document has none."""
        self._hints.append((say, message))

    def suggest(self, line: str) -> None:
        """Print a line below the report; a document has none."""
        self._hints.append((print_line, line))

    def failed(self, graph: str, reason: str) -> None:
        """Count a failed graph; the first ones are named at once."""
        self._failed[graph] = None
        if len(self._failed) <= MAX_REPORTED:
            say(f"failed: {graph}: {reason}")

    def show(self, request: Verb, answer: Any) -> int:
        """Write the file or folder of ``-o``, print the answer, and return the exit status."""
        outputs = (getattr(request, name) for name in request.marked("output"))
        path: Path | None = next(outputs, None)
        noun, page = "", getattr(answer, "page", None)
        if path is not None and path.suffix == ".html" and page is not None:
            with_command(page(), request.inputs["graph"], simulated(request)).save(path)
            noun = "report"
        elif path is not None:
            noun = answer.write(path)
        if not isinstance(answer, Written):
            print_json(answer.to_json()) if self.as_json else print_report(answer.report())
            if path is not None:
                say_written(noun, path)
        elif self.as_json:
            print_json(answer.facts)
        else:
            print_file(answer.text)
        sentences = answer.sentences if isinstance(answer, Written) else ()
        for emit, line in () if self.as_json else (*((say, s) for s in sentences), *self._hints):
            emit(line)
        if self._failed:
            say(f"{counted(len(self._failed), 'graph')} failed")
        return SOME_FAILED if self._failed else getattr(answer, "status", 0)


def command_of(
    model: type[V],
    name: str,
    summary: str,
    example: str,
    *,
    group: click.Group | None = None,
    cls: type[GroupedCommand] = GroupedCommand,
    prepared: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: {},
) -> click.Command:
    """Command that runs a verb and prints its answer.

    ``prepared`` makes further fields of the request from the values of further options.
    """

    def run(settings: V, as_json: bool, **values: Any) -> int:
        progress = Terminal(as_json=as_json)
        try:
            settings = settings.model_copy(update=prepared(values))
            answer = settings.run(progress)
        except KeyboardInterrupt:
            if (status := settings.when_stopped(progress)) is None:
                raise
            return status
        return progress.show(settings, answer)

    run.__doc__ = model.__doc__
    made = verb(name, summary, example, settings=model, group=group, cls=cls)
    return made(AS_JSON(writes_of(model)(verbose(run))))
