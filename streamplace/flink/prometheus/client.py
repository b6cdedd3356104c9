"""Client of Prometheus' HTTP API: addresses, ranges of time, and series in steps.

The server may also be Thanos, Mimir or VictoriaMetrics. It computes rates of counters by ``rate``,
which allows for counters that restart.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np

from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.rest.client import (
    Access,
    http_client,
    masked,
    plain_address,
    read_authorization,
    send_request,
)
from streamplace.model.arrays import Floats
from streamplace.model.message_text import quoted, shown
from streamplace.model.units import seconds

SCHEME = "prometheus:"
AUTHORIZATION = "STREAMPLACE_PROMETHEUS_AUTHORIZATION"
"""Environment variable with ``Bearer TOKEN`` or ``NAME:PASSWORD``."""
ANSWER_SECONDS = 120.0
"""Timeout of a query; also Prometheus' own by default."""
MAX_POINTS, MAX_CHUNK = 10_000, 300_000
"""Maximum points of a series in an answer (Prometheus allows 11,000), and of all its series."""
LABEL = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
K = TypeVar("K")


class PrometheusError(StreamplaceError):
    """Prometheus does not answer, or lacks the requested series."""


class TimeRange(NamedTuple):
    """A range of time, in seconds since 1970."""

    start: float
    end: float

    def __str__(self) -> str:
        ends = (datetime.fromtimestamp(end, UTC) for end in self)
        return " to ".join(f"{end:%Y-%m-%d %H:%M:%S}" for end in ends)


def time_range(text: str, now: float) -> TimeRange:
    """Range that ends now, or between two moments; without a time zone they are in UTC.

    >>> time_range("7d", 1e6), time_range("1970-01-01T00:00..1970-01-02", 1e6)
    (TimeRange(start=395200.0, end=1000000.0), TimeRange(start=0.0, end=86400.0))
    """
    first, dots, last = text.partition("..")
    end = _moment(last) if last else now
    span = TimeRange(_moment(first) if dots else end - seconds(text), end)
    if not span.start < span.end:
        raise SettingError(f"the time {quoted(text)} ends before it begins")
    return span


def _moment(text: str) -> float:
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SettingError(
            f"{quoted(text)} is not a time; write 7d, or 2026-03-01T07:00..2026-03-02T07:00"
        ) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True, slots=True)
class PrometheusAddress:
    """Address of a Prometheus, and labels that select the series to read.

    >>> address = PrometheusAddress.of("prometheus:http://host:9090?namespace=shop&pod=~shop-.*")
    >>> address.url, address.selector("up")
    ('http://host:9090', 'up{namespace="shop",pod=~"shop-.*"}')
    """

    url: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str) -> "PrometheusAddress":
        """Parse ``prometheus:URL``; the query of the URL is the labels."""
        url, _, query = text.removeprefix(SCHEME).partition("?")
        if not text.startswith(SCHEME) or not url:
            raise SettingError(f"{masked(text)} is not a history; write {SCHEME}http://HOST:9090")
        if "@" in urlsplit(url).netloc:
            raise SettingError(
                f"{masked(url)} has a password, which others may see; put NAME:PASSWORD into the "
                f"environment variable {AUTHORIZATION}"
            )
        labels = tuple(parse_qsl(query, keep_blank_values=True))
        if odd := [name for name, _ in labels if not LABEL.fullmatch(name)]:
            raise SettingError(f"{quoted(odd[0])} is not a label; write {SCHEME}URL?namespace=shop")
        return cls(plain_address(url), labels)

    def selector(self, metric: str, *matchers: str, without: str = "") -> str:
        """Selector of the series of a metric; ``without``: prefix of labels to leave out."""
        labels = [
            equal(name, value)
            for name, value in self.labels
            if not (without and name.startswith(without))
        ]
        return f"{metric}{{{','.join((*matchers, *labels))}}}"


def equal(label: str, value: str) -> str:
    """Matcher of a label; a value with ``~`` in front is a regular expression."""
    sign = "=~" if value.startswith("~") else "="
    return f"{label}{sign}{json.dumps(value.removeprefix('~'), ensure_ascii=False)}"


class TimeGrid(NamedTuple):
    """Windows of equal length."""

    first: float  # end of the first window
    step: float  # seconds
    number: int

    @classmethod
    def of(cls, span: TimeRange, step: float) -> "TimeGrid":
        """Windows that end with a range."""
        number = max(1, int((span.end - span.start) / step + 1e-6))
        return cls(span.end - step * (number - 1), step, number)

    @property
    def ends(self) -> Floats:
        """End of each window, [T]."""
        return np.asarray(self.first + self.step * np.arange(self.number), np.float64)


class Prometheus:
    """A Prometheus server; ``access`` has the certificates for encrypted connections."""

    def __init__(self, address: PrometheusAddress, access: Access | None = None) -> None:
        if access is None or not address.url.startswith("https:"):
            access = Access()
        self.address, self.warnings = address, dict[str, None]()
        self._path = urlsplit(address.url).path
        authorization = read_authorization(None, AUTHORIZATION)
        self._client = http_client(
            address.url,
            Access(access.authorities, access.certificate, access.key, authorization),
        )

    def series(
        self,
        query: str,
        grid: TimeGrid,
        key: Callable[[Mapping[str, str]], K | None],
        rows: int = 1,
    ) -> dict[K, Floats]:
        """Values of the series of a query at the ends of windows, [T], by a key of their labels.

        Values that Prometheus does not have are NaN. Series of one key are added up; series without
        a key are left out.

        ``rows``: expected number of series, which limits the length of answers.
        """
        series: dict[K, Floats] = {}
        size = max(1, min(MAX_POINTS, MAX_CHUNK // max(1, rows)))
        for part in range(0, grid.number, size):
            ends = grid.ends[part : part + size]
            for labels, times, values in self._range(query, ends[0], ends[-1], grid.step):
                if (name := key(labels)) is None:
                    continue
                row = series.setdefault(name, np.full(grid.number, np.nan))
                at = np.rint((times - grid.first) / grid.step).astype(int)
                row[at] = np.where(np.isnan(row[at]), values, row[at] + values)
        return series

    def _range(
        self, query: str, start: float, end: float, step: float
    ) -> Iterator[tuple[Mapping[str, str], Floats, Floats]]:
        ends = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        data = self.get("query_range", query=query, **ends)
        try:
            for row in data["result"]:
                points = row["values"]
                times = np.array([point[0] for point in points], np.float64)
                yield row["metric"], times, np.array([float(p[1]) for p in points], np.float64)
        except (KeyError, TypeError, ValueError, IndexError):
            raise self._no_prometheus("its answer is not one of Prometheus") from None

    def get(self, path: str, **query: str) -> Any:
        """Data of an answer."""
        import httpx

        target = f"{self._path}/api/v1/{path}?{urlencode(query)}"
        try:
            head, content = send_request(
                self._client, "GET", self.address.url, target, ANSWER_SECONDS
            )
        except httpx.TimeoutException:
            raise self._no_prometheus(
                f"it takes more than {ANSWER_SECONDS:g} s; read a shorter time (--since)"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = shown(str(error) or type(error).__name__)
            reason = "connection refused" if "Connection refused" in reason else reason
            raise self._no_prometheus(reason) from None
        if head.status_code in (401, 403):
            raise PrometheusError(
                f"{self.address.url} requires authorization ({head.status_code}); put "
                f"NAME:PASSWORD or 'Bearer TOKEN' into the environment variable {AUTHORIZATION}"
            )
        try:
            document = json.loads(content)
            warnings, status = document.get("warnings", ()), document["status"]
            if status != "success":
                raise PrometheusError(f"Prometheus answers: {shown(str(document['error']), 300)}")
            self.warnings |= dict.fromkeys(f"Prometheus warns: {shown(str(w))}" for w in warnings)
            return document["data"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._no_prometheus(
                f"it answers {head.status_code} without a document of Prometheus"
            ) from None

    def _no_prometheus(self, reason: str) -> PrometheusError:
        return PrometheusError(f"no Prometheus answers at {self.address.url}: {reason}")
