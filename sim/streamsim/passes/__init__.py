"""One pass: how long a set of tuples takes through a placed graph."""

from streamsim.passes.compiled import Pass
from streamsim.passes.compiling import compile_pass
from streamsim.passes.makespans import makespans
from streamsim.passes.rules import DOPPLER, GIPH, PLACETO, PRESETS, Rules

__all__ = ["DOPPLER", "GIPH", "PLACETO", "PRESETS", "Pass", "Rules", "compile_pass", "makespans"]
