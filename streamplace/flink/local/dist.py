"""Find Flink's libraries and Java on this machine, and download the libraries if necessary."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.flink.versions import DOWNLOADED, OLDEST
from streamplace.io.files import user_cache

TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
"""Main class of TaskManagers."""
LOOPBACK = "127.0.0.1"
_DIST_JAR = re.compile(r"flink-dist-(\d+\.\d[\w.+-]*)\.jar")
_JAVA_OPTIONS = re.compile(rb"^\s*all:\s*(--add-.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Flink:
    """An unpacked Flink with the folders ``lib`` and ``opt``."""

    home: Path
    version: str

    @property
    def dist_jar(self) -> Path:
        """The jar of Flink itself."""
        return self.home / "lib" / f"flink-dist-{self.version}.jar"

    @property
    def jars(self) -> list[Path]:
        """Jars on the class path of a cluster."""
        return sorted((self.home / "lib").glob("*.jar"))

    def java_options(self) -> list[str]:
        """Options that recent versions of Java need to run Flink."""
        try:
            with zipfile.ZipFile(self.dist_jar) as jar:
                match = _JAVA_OPTIONS.search(jar.read("config.yaml"))
        except (KeyError, OSError, zipfile.BadZipFile):
            raise SettingError(
                f"{self.dist_jar}: holds no config.yaml, which a local cluster needs; name the "
                f"folder of a complete Flink of version {OLDEST} or later"
            ) from None
        return match[1].decode().split() if match else []


def find_flink(home: Path | None = None) -> Flink:
    """Flink at ``home``, at $FLINK_HOME, installed from PyPI, or downloaded; in this order."""
    if home is not None:
        return _at(home)
    if given := os.environ.get("FLINK_HOME"):
        return _at(Path(given))
    spec = importlib.util.find_spec("pyflink")
    places = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    for place in (*places, fetched_home(DOWNLOADED)):
        if (place / "lib").is_dir():
            return _at(place)
    raise SettingError(
        "Flink is not installed; run 'streamplace flink fetch' (230 MB), or set FLINK_HOME to "
        "the folder of an installation"
    )


def fetched_home(version: str) -> Path:
    """Folder of a downloaded Flink."""
    return user_cache() / f"flink-{version}" / "pyflink"


def fetch_flink(version: str = DOWNLOADED) -> Flink:
    """Flink's libraries in the user's cache folder, downloaded from PyPI if they are not there."""
    home = fetched_home(version)
    if not (home / "lib").is_dir():
        target = home.parent.with_name(f"{home.parent.name}.{os.getpid()}")
        package = f"apache-flink-libraries=={version}"
        pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        done = subprocess.run([*pip, str(target), package], capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(target, ignore_errors=True)
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise SettingError(f"cannot download {package}: {reason}")
        if home.parent.exists():  # another process was faster
            shutil.rmtree(target)
        else:
            target.rename(home.parent)
    return _at(home)


def find_java(tool: str = "java") -> str:
    """Path of ``java`` or another tool of the JDK."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(tool, path=str(Path(home) / "bin") if home else None)
    if path is None:
        raise SettingError(f"{tool} is not installed; install JDK 17 or set JAVA_HOME")
    return path


def _at(home: Path) -> Flink:
    names = [path.name for path in (home / "lib").glob("flink-dist-*.jar")]
    versions = [match[1] for match in map(_DIST_JAR.fullmatch, names) if match]
    if not versions:
        raise SettingError(
            f"{home}: holds no lib/flink-dist-*.jar; name the folder of a Flink installation"
        )
    return Flink(home, versions[0])
