"""Cluster and constraints files."""

import math

import pytest
from refusals import refusal_of
from streamsim import resource_loads
from streamsim.pass_costs import spent

from streamplace.io.clusters import parse_cluster, read_cluster, write_cluster
from streamplace.io.constraints import parse_constraints, read_constraints
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph

CLUSTER = """
bandwidth = "1000 Mbps"
latency = "1 ms"
overhead = "1 us"
overhead_per_byte = "2 ns"
[[devices]]
name = "cpu"
count = 2
mips = "2.5 GIPS"
cores = 4
[[devices]]
name = "gpu"
tags = ["cuda"]
memory = "16 GB"
egress = "10 Gbps"
[[links]]
from = "cpu0"
to = "gpu"
bandwidth = "100 Mbps"
"""


def refusal(parse, text):
    """The message that a text gets."""
    return refusal_of("c.toml", parse, text.encode(), "c.toml")


def test_a_cluster_is_read(tmp_path):
    """Counts make several devices, links override the default one way."""
    (tmp_path / "c.toml").write_text(CLUSTER)
    cluster = read_cluster(tmp_path / "c.toml")
    assert cluster.devices.name == ("cpu0", "cpu1", "gpu")
    assert cluster.devices["gpu"].tags == {"cuda"}
    assert cluster.bandwidth_bps[0, 2] == 1e8
    assert cluster.bandwidth_bps[2, 0] == 1e9
    assert (cluster.overhead_s, cluster.overhead_s_per_byte) == (1e-6, 2e-9)
    assert cluster.latency_s[0, 1] == 1e-3


def test_a_slow_cluster_survives_its_file(tmp_path):
    """Its bandwidths are written with their unit, which those of a few bit/s need."""
    devices = [Device("a", egress=f"{0.1 + 0.2} bps", mips="2e9 MIPS"), Device("b")]
    cluster = Cluster.of(devices, bandwidth=[[1, 1 / 3], [99_999, 1]])
    write_cluster(cluster, tmp_path / "c.toml")
    assert read_cluster(tmp_path / "c.toml") == cluster


def test_a_uniform_cluster_has_a_short_file():
    assert parse_cluster(b'devices = [{name = "d", count = 5}]', "c") == Cluster.uniform(5)


def test_a_link_may_be_given_in_parts():
    cluster = parse_cluster((TWICE % 'bandwidth = "1 Gbps"').encode(), "c")
    assert (cluster.latency_s[0, 1], cluster.bandwidth_bps[0, 1]) == (1, 1e9)


def test_constraints_are_read(tmp_path):
    text = 'colocate = [["a", "b"]]\nexlocate = [["a", "c"]]\npin = {a = "d0"}\n'
    (tmp_path / "c.toml").write_text(text + '[allowed]\nc = ["d0", "d1"]\n')
    assert read_constraints(tmp_path / "c.toml") == Constraints(
        {"a": "d0"}, [{"a", "b"}], [{"a", "c"}], {"c": {"d0", "d1"}}
    )


LINK = 'from = "a", to = "b"'
TWICE = (
    f'devices = [{{name = "a"}}, {{name = "b"}}]\nlinks = [{{{LINK}, latency = 1}}, {{{LINK}, %s}}]'
)
HUGE = ", ".join(f'{{name = "r{i}_", count = 4096}}' for i in range(250))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "devices"),
        ("devices = []", "0 devices"),
        (f"devices = [{HUGE}]", "1024000 devices"),
        ('devices = [{name = "a"}, {name = "a"}]', "'a'"),
        ('devices = [{name = "a", mips = -1}]', "devices[0].mips"),
        ('devices = [{name = "a", cores = 1.5}]', "devices[0].cores"),
        ('devices = [{name = "a", speed = 1}]', "devices[0].speed"),
        ('bandwidth = "1000 Mbpz"\ndevices = [{name = "a"}]', "every link"),
        ('bandwidth = 1000\ndevices = [{name = "a"}]', "every link"),
        ('devices = [{name = "a", egress = 100}]', "device 'a': egress"),
        ('gap = "1 parsec"\ndevices = [{name = "a"}]', "gap"),
        ('devices = [{name = "a"}]\nlinks = [{from = "a", to = "b\\n"}]', r"link a→b\n"),
        ('devices = [{name = "a"}]\nlinks = [{from = "a", to = "a", latency = "1 x"}]', "link a→a"),
        (TWICE % "latency = 2", "link a→b: latency is given twice"),
        ('devices = [{name = "d", mips = 100, cores = 2, reserved = 200}]', "device 'd'"),
    ],
)
def test_a_bad_cluster_is_refused(text, place):
    """Devices are counted before they are made: a million would need terabytes."""
    assert place in refusal(parse_cluster, text)


@pytest.mark.parametrize(
    ("text", "place"),
    [("pin = {str = 3}", "pin.str"), ("exlocate = [[1]]", "exlocate[0][0]"), ("pins = {}", "pins")],
)
def test_bad_constraints_are_refused(text, place):
    assert refusal(parse_constraints, text).startswith(place)


CALIBRATED = b"""
bandwidth = "100 Mbps"
framing = 0.25
headroom = 0.1
devices = [
  {name = "d", count = 2, mips = 1000, cores = 2, reserved = "200 MIPS", egress = "50 Mbps"},
  {name = "e", mips = 1000},
]
"""


def test_what_is_reserved_and_left_free_is_taken_off_a_cluster():
    """Reserved CPU is that of all cores together; headers and headroom shrink links and cards."""
    cluster = parse_cluster(CALIBRATED, "c")
    assert cluster.devices.speed.tolist() == pytest.approx([810, 810, 900])
    assert cluster.devices.egress.tolist() == pytest.approx([36e6, 36e6, math.inf])
    assert cluster.bandwidth_bps[0, 1] == pytest.approx(72e6)


@pytest.mark.parametrize(
    ("free", "row", "headroom"),
    [
        (0.5, "reserved = 500", 0.0),
        (0.5, "cores = 2, reserved = 1000", 0.0),
        (0.8, "cores = 1", 0.2),
    ],
)
def test_what_a_core_lacks_remote_tuples_lack(free, row, headroom):
    """A remote tuple takes the seconds of a whole core: half of one is full at half the rate."""
    devices = f'devices = [{{name = "d", count = 2, mips = 1000, {row}}}]'
    text = f"overhead = 0.01\nheadroom = {headroom}\n{devices}"
    cluster = parse_cluster(text.encode(), "c")
    operators = [Operator("a", ipt=2e6, rate=10), Operator("b", ipt=2e6)]
    problem = Problem(StreamGraph.of("g", operators, [Stream("a", "b")]), cluster)
    loads = resource_loads(problem.instance, [0, 1])
    cores = cluster.devices.cores[0]
    assert loads.devices.tolist() == pytest.approx([10 * (0.002 + 0.01) / cores / free] * 2)
    spent_s = spent(problem.instance, [[0, 1]]).core_seconds[0]
    assert spent_s.tolist() == pytest.approx([(0.002 + 0.01) / free] * 2)
