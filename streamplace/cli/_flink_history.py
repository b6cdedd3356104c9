"""``streamplace flink history``: predicted and measured rates of jobs, and watches."""

from pathlib import Path

import click

from streamplace.cli._flink import JSON
from streamplace.cli._options import LEDGER, writes
from streamplace.cli._output import print_json, print_report, say


@click.command(
    "history",
    short_help="Show what was predicted and measured, and what watches did.",
    epilog="Example: streamplace flink history --ledger ledger.jsonl",
)
@LEDGER
@click.option("--job", help="Name of the job whose runs are shown.  [default: all]")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Confidence of the interval of the next prediction.",
)
@writes("Report to write (.html).")
@JSON
def history_(
    ledger: Path | None,
    job: str | None,
    confidence: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show the runs of the ledger, and the rounds and decisions of watches.

    The ledger has predicted and measured rates, and whether intervals held; 'flink move' and
    'flink watch' write it. 'flink move', 'flink advise', 'plan' and 'place' learn from it
    how wide the intervals of their predictions have to be. Lines that are damaged or of another
    version are skipped.

    Of every job that 'flink watch' has watched on this machine, the last rounds and all decisions
    are shown, with their reasons and outcomes. The report draws rate, capacity, TaskManagers and
    moves over time.
    """
    from streamplace.evaluate.history import PredictionHistory
    from streamplace.evaluate.watch_history import WatchHistory
    from streamplace.io.ledger import read_ledger, usual_ledger
    from streamplace.io.watch_store import KEPT, StoreError, read_records, usual_store
    from streamplace.model.report import Report
    from streamplace.report.pages import check_page

    if output is not None:
        check_page(output)
    recorded = read_ledger(ledger or usual_ledger())
    if recorded.skipped:
        say(f"warning: {recorded.skipped}")
    entries = [entry for entry in recorded.entries if job in (None, entry.job)]
    history = PredictionHistory(entries, confidence)
    try:
        records = read_records(usual_store(), KEPT)
    except StoreError as error:
        say(f"warning: {error}")
        records = []
    watches = WatchHistory([one for one in records if job in (None, one.name)])
    shown = watches.report()
    report = Report((*history.report().parts, *shown.parts), subject=shown.subject)
    if output is not None:
        report.save(output)
        say(f"report → {output}")
    if as_json:
        print_json(history.to_json() | {"watches": watches.to_json()})
    else:
        print_report(report)
