"""Cases made with the simulators of the papers."""

import numpy as np
import pytest
from passes_cases import giph, golden, placeto
from streamsim.passes import GIPH, PLACETO, makespans, schedule

CLOSE = 1e-6


def test_giph_is_reproduced_with_every_start_and_end() -> None:
    for problem in golden("giph"):
        compiled, cases = giph(problem), problem["placements"]
        together = makespans(compiled, [case["mapping"] for case in cases])
        np.testing.assert_allclose(together, [case["latency"] for case in cases], rtol=CLOSE)
        for case in cases:
            result = schedule(compiled, case["mapping"], GIPH)
            assert result.makespan == pytest.approx(case["latency"], rel=CLOSE)
            np.testing.assert_allclose(result.start, case["start"], rtol=CLOSE)
            np.testing.assert_allclose(result.finish, case["end"], rtol=CLOSE)


def test_placeto_is_reproduced_with_every_start_and_end() -> None:
    for problem in golden("placeto"):
        compiled, task = placeto(problem)
        for case in problem["placements"]:
            result = schedule(compiled, np.array(case["mapping"])[task], PLACETO)
            assert result.makespan == pytest.approx(case["makespan"] * 1e-6, rel=CLOSE)
            np.testing.assert_allclose(result.start, np.array(case["start"])[task] * 1e-6, CLOSE)
            np.testing.assert_allclose(result.finish, np.array(case["end"])[task] * 1e-6, CLOSE)
