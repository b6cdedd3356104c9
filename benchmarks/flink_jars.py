"""Jars of Java files that are compiled against a Flink: those of the package, and those of jobs.

``python benchmarks/flink_jars.py`` (``make jars``) compiles what the package contains, for Java 11.
The same sources give the same bytes with one version of the JDK (17), which a test compares.
"""

import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from streamplace.flink.local.session import Flink, find_flink, find_java

ROOT = Path(__file__).parents[1]
FLINK = ROOT / "streamplace" / "flink"
SHIPPED = {
    FLINK / "program" / "Placed.jar": FLINK / "program" / "java",
    FLINK / "cpu" / "streamplace-reporter.jar": FLINK / "cpu" / "java",
}
"""Jar in the package → folder of its sources."""
JAVA = 11
"""Version of Java on which they run: the least that any supported Flink requires."""


def compile_java(
    flink: Flink, sources: Sequence[Path], folder: Path, release: int | None = None
) -> None:
    """Compile Java files against Flink into a folder of classes.

    They run on Java of version ``release``, by default that of the compiler.
    """
    options = ["-J-XX:TieredStopAtLevel=1", "-nowarn", "-encoding", "UTF-8", "-d", str(folder)]
    options += [] if release is None else ["--release", str(release)]
    classes = ["-cp", ":".join(map(str, flink.jars))]
    command = [find_java("javac"), *options, *classes, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def build_jar(flink: Flink, sources: Sequence[Path], jar: Path, release: int | None = None) -> None:
    """Compile Java files into a jar; other files are added as they are, under META-INF/services."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(jar, "w") as made:
        java = [path for path in sources if path.suffix == ".java"]
        compile_java(flink, java, Path(folder), release)
        entries = {
            str(path.relative_to(folder)): path for path in Path(folder).rglob("*.class")
        } | {f"META-INF/services/{path.name}": path for path in sources if path not in java}
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            made.writestr(entry, entries[name].read_bytes())


def with_jars(flink: Flink, jars: Sequence[Path], home: Path) -> Flink:
    """Flink with jars among its own, whose classes are loaded once and not by every job.

    So what Java has compiled of a job is still compiled when the job runs again.
    """
    (home / "lib").mkdir(parents=True)
    for jar in (*flink.jars, *jars):
        (home / "lib" / jar.name).symlink_to(jar)
    (home / "opt").symlink_to(flink.home / "opt")
    return Flink(home, flink.version)


def build_shipped(flink: Flink, jar: Path, target: Path) -> None:
    """Build a jar of the package into another file."""
    build_jar(flink, sorted(SHIPPED[jar].iterdir()), target, JAVA)


if __name__ == "__main__":
    for shipped in SHIPPED:
        build_shipped(find_flink(), shipped, shipped)
