"""The exported class, compiled against Flink and run on a job's graph."""

import base64
import subprocess
from pathlib import Path

from streamplace.engines.flink.local.dist import Flink, find_java
from streamplace.engines.flink.pin.pinning import pinning
from streamplace.engines.flink.pin.spread import SpreadLimits
from streamplace.engines.flink.program.jars import compile_java, placed_java

MAIN = """
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

public final class Main {
    public static void main(String[] names) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        DataStream<Long> stream = env.fromSequence(1, 2).name(decoded(names[0]));
        for (int i = 1; i < names.length; i++) {
            stream = stream.filter(number -> true).name(decoded(names[i]));
        }
        StreamGraph graph = Placed.pin(env.getStreamGraph());
        graph.getStreamNodes().forEach(node -> System.out.println(
            encoded(node.getSlotSharingGroup()) + " "
                + graph.getSlotSharingGroupResource(node.getSlotSharingGroup()).isPresent()));
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
"""
NAMES = (
    "unit\x1fends",
    "record\x1e1",
    "\x1e0\x1f\x1f",
    "a\nb",
    "\\u000a\\",
    '" + x + "',
    "größe 大",
)


def test_operators_and_devices_of_any_name_get_their_groups(flink: Flink, tmp_path: Path) -> None:
    """Those too that hold what the class separates its own cells with."""
    devices = {name: f"on {name}" for name in NAMES}
    limits = SpreadLimits.untouched(list(devices.values()))
    answer = pinning({name: [device] for name, device in devices.items()}, limits)
    for name, text in (placed_java(answer) | {"Main.java": MAIN}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    compile_java(flink, sorted(tmp_path.glob("*.java")), tmp_path)
    run = subprocess.run(
        [find_java("java"), "-cp", ":".join(map(str, [*flink.jars, tmp_path])), "Main"]
        + [base64.b64encode(name.encode()).decode() for name in NAMES],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    told = [line.split() for line in run.stdout.splitlines()]
    assert [base64.b64decode(group).decode() for group, _ in told] == list(devices.values())
    assert {known for _, known in told} == {"true"}
