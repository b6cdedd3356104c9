"""Prometheus itself, on loopback, with series that are written for a test or scraped."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from urllib.request import urlopen

import pytest

from streamplace.flink.local.session import free_port

PROGRAMS = ("prometheus", "promtool")
START_SECONDS = 60.0


def require_prometheus():
    """Skip the test where Prometheus is not installed."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")


def open_metrics(series: Mapping[tuple[str, tuple[tuple[str, str], ...]], Sequence[float]], times):
    """Text with samples of series, by metric and labels, at these times; NaN stands for none."""
    lines, last = [], ""
    for (metric, labels), values in sorted(series.items()):
        if metric != last:
            lines.append(f"# TYPE {metric} gauge")
        last = metric
        own = ",".join(f'{name}="{value}"' for name, value in labels)
        pairs = zip(values, times, strict=True)
        lines += [f"{metric}{{{own}}} {v:.9g} {at}" for v, at in pairs if v == v]
    return "\n".join([*lines, "# EOF", ""])


@contextmanager
def prometheus(folder, text=None, scraped=(), interval="1s"):
    """Address of a Prometheus with the samples of a text, which scrapes some ports, meanwhile."""
    data = folder / "data"
    if text is not None:
        (folder / "series").write_text(text)
        one_block = "--max-block-duration=1000h"  # the text is read again for each
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", one_block]
        subprocess.run([*command, folder / "series", data], check=True, capture_output=True)
    targets = [f"127.0.0.1:{number}" for number in scraped]
    config = folder / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}\n"
        f"scrape_configs: [{{job_name: flink, static_configs: [{{targets: {targets}}}]}}]\n"
    )
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = {
        "config.file": config,
        "storage.tsdb.path": data,
        "storage.tsdb.retention.time": "100y",
        "web.listen-address": url.removeprefix("http://"),
        "log.level": "warn",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(url):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def _is_ready(url):
    with suppress(OSError), urlopen(f"{url}/-/ready") as answer:
        return answer.status == 200
    return False
