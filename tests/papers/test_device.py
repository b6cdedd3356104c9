"""The device that the networks of papers compute on."""

import numpy as np
import pytest
from constructive_cases import hdp_policy, hsdag_policy, learner_of
from default_device import NoDefaultDevice


@pytest.mark.parametrize("made", [hdp_policy, hsdag_policy])
def test_no_tensor_of_a_step_of_a_paper_is_made_on_the_default_device(made):
    pupil = learner_of(made())
    with NoDefaultDevice():
        pupil.loss(np.array([0]), 0, 0)[0].backward()
