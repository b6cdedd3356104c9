"""Cases made with the simulators of the papers."""

import numpy as np
import pytest
from passes_cases import giph, golden, placeto
from streamsim.passes import GIPH, PLACETO, makespans, schedule

CLOSE = 1e-6


def test_giph_is_reproduced_with_every_start_and_end() -> None:
    for problem in golden("giph"):
        one, cases = giph(problem), problem["placements"]
        together = makespans(one, [case["mapping"] for case in cases])
        np.testing.assert_allclose(together, [case["latency"] for case in cases], rtol=CLOSE)
        for case in cases:
            seen = schedule(one, case["mapping"], GIPH)
            assert seen.makespan == pytest.approx(case["latency"], rel=CLOSE)
            np.testing.assert_allclose(seen.start, case["start"], rtol=CLOSE)
            np.testing.assert_allclose(seen.finish, case["end"], rtol=CLOSE)


def test_placeto_is_reproduced_with_every_start_and_end() -> None:
    for problem in golden("placeto"):
        one, task = placeto(problem)
        for case in problem["placements"]:
            seen = schedule(one, np.array(case["mapping"])[task], PLACETO)
            assert seen.makespan == pytest.approx(case["makespan"] * 1e-6, rel=CLOSE)
            np.testing.assert_allclose(seen.start, np.array(case["start"])[task] * 1e-6, CLOSE)
            np.testing.assert_allclose(seen.finish, np.array(case["end"])[task] * 1e-6, CLOSE)
