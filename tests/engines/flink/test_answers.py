"""Answers that are more than a job can be."""

import json

import pytest

from streamplace.engines.flink.rest.answers import LONGEST, MOST_VERTICES, parse_answer

VERTEX = {"id": "a", "name": "a", "parallelism": 1, "status": "RUNNING"}


def job(vertices: int) -> bytes:
    """A job of many vertices."""
    document = {"name": "j", "state": "RUNNING", "duration": 1, "vertices": [VERTEX] * vertices}
    return json.dumps(document).encode()


def test_a_job_of_too_many_vertices_is_refused_in_one_line() -> None:
    """Every vertex would be asked about."""
    with pytest.raises(ValueError, match=f"vertices: .* at most {MOST_VERTICES} items") as refused:
        parse_answer("/jobs/x", job(100_000))
    assert len(str(refused.value)) < 2 * LONGEST
    assert len(parse_answer("/jobs/x", job(MOST_VERTICES))["vertices"]) == MOST_VERTICES


def test_the_plan_of_a_job_that_flink_has_not_planned_yet_is_none() -> None:
    """Flink 1 shows an empty one while a job is initialized, or waits for slots."""
    document = json.loads(job(0)) | {"state": "INITIALIZING", "plan": {}}
    assert parse_answer("/jobs/x", json.dumps(document).encode())["plan"] is None
    with pytest.raises(ValueError, match=r"plan\.nodes"):
        parse_answer("/jobs/x/plan", b'{"plan": {}}')
