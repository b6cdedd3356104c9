"""Tuples that the tasks of a job process per second."""

from collections.abc import Container, Mapping, Sequence

from streamplace.engines.flink.measure.job_watch import JobWatch, seconds_running
from streamplace.engines.flink.measure.sampling import Activity, sent_by
from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.client import FINISHED, FlinkError
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.model.messages import listed, quoted
from streamplace.model.units import digits


def processed_tuples(
    watch: JobWatch, activity: Mapping[str, Activity], doubts: list[str]
) -> dict[str, float]:
    """Tuples/s that each task processes: those that it reads, or generates if it is a source.

    What is not known of them is added to the doubts.
    """
    document = watch.rest.job(watch.job)
    _refuse_ended(document, watch.tasks, watch.generated)
    running = seconds_running(document)
    answer = {task.id: 0.0 for task in watch.tasks if task.has_ended}
    if answer:
        names = listed([task.name for task in watch.tasks if task.has_ended])
        doubts.append(f"rate and ipt of {names}: counted as 0, because all input was read before")
    for task in watch.tasks:
        if task.has_ended:
            continue
        generated, seen = watch.generated.get(task.id), activity[task.id]
        answer[task.id] = _taken_in(doubts, task, generated, seen)
        answer[task.id] = answer[task.id] or _held_back(doubts, task, generated, seen, running)
    return answer


def _refuse_ended(document: Job, tasks: Sequence[FlinkTask], sources: Container[str]) -> None:
    """Raise FlinkError if a source has ended meanwhile, or all have.

    The measured rate of one that has ended meanwhile is no longer valid.
    """
    ended = {row["id"] for row in document["vertices"] if row.get("status") == FINISHED}
    own = [task for task in tasks if task.id in sources]
    meanwhile = [task for task in own if task.id in ended and not task.has_ended]
    if own and all(task.id in ended for task in own):
        raise FlinkError(
            f"source {quoted(own[0].name)} has ended; profile the job while all sources run"
        )
    if meanwhile:
        raise FlinkError(
            f"source {quoted(meanwhile[0].name)} has ended while the job was measured; measure it "
            "again"
        )


def _taken_in(doubts: list[str], task: FlinkTask, generated: str | None, seen: Activity) -> float:
    """Tuples/s that a task processes."""
    if generated is None:
        return seen.records_in
    if [sent_by(one) for one in task.operators].count(generated) == 1 and generated in seen.rates:
        return seen.rates[generated]
    if len(task.operators) > 1:
        doubts.append(
            f"rate of {task.name}: that of the tuples that leave the chain, because Flink does not "
            "report how many its first operator emits; rates that are given for it, such as "
            "--rate, must be those, too"
        )
    return seen.records_out


def _held_back(
    doubts: list[str], task: FlinkTask, generated: str | None, seen: Activity, running: float
) -> float:
    """Mean tuples/s since the last start, for a source that was silent during the measurement.

    Its counters begin at 0 whenever the job restarts.
    """
    sent = seen.totals.get(generated or "", seen.totals.get("numRecordsOut", 0.0))
    if generated is None or not sent or not running:
        return 0.0
    doubts.append(
        f"rate of {task.name}: it sent nothing during the measurement, because of watermark "
        f"alignment or missing input; {digits(sent / running, 3)} tuples/s is its mean since the "
        "job's last start, and its CPU is unknown; profile for longer"
    )
    return sent / running
