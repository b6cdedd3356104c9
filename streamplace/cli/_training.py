"""Progress of training on stderr: a bar on a terminal, a line per epoch in a log."""

import sys
from typing import TYPE_CHECKING

from streamplace.cli._output import say
from streamplace.training.progress import TrainingProgress

if TYPE_CHECKING:
    from streamplace.learn.history import History


class Display(TrainingProgress):
    """Shows training as it goes; without a terminal, a line per epoch."""

    def epoch(self, history: "History") -> None:
        """Show the epoch until the next is done."""
        super().epoch(history)
        if not sys.stderr.isatty():
            say(self._note)
