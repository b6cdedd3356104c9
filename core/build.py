"""Build the extension module: a hook of hatchling, and a command for whoever changes `core/`.

    python core/build.py

An editable installation gets a build that is fast to link, a wheel one that is fast to run. With
``STREAMPLACE_GLIBC=2.17``, zig links the wheel's so that it runs with that glibc or a newer one.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a demo is built where hatchling is not installed
    BuildHookInterface = object
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CORE = Path(__file__).resolve().parent
EXTENSION = CORE.parent / "sim" / "streamsim" / "_core.abi3.so"
GLIBC = os.environ.get("STREAMPLACE_GLIBC", "")
NO_RUST = "the core is written in Rust: install it from https://rustup.rs, then try again"


class CoreHook(BuildHookInterface):
    """Builds the extension module before a wheel is packed."""

    def dependencies(self) -> list[str]:
        """What fetches Rust where there is none, and what links for an older glibc."""
        return [*(() if _cargo() else ("puccinialin",)), *(("cargo-zigbuild",) if GLIBC else ())]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it: beside its package if that is editable, else into the wheel."""
        if self.target_name != "wheel":
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if GLIBC:
            platform = platform.replace("linux", f"manylinux_{GLIBC.replace('.', '_')}")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        if version == "editable":
            build()
        else:
            built = build("release", GLIBC)
            build_data["force_include"][str(built)] = f"streamsim/{EXTENSION.name}"


def build(profile: str = "dev", glibc: str = "") -> Path:
    """Compile what has changed; a developer's build is put beside its package."""
    arguments = ["zigbuild" if glibc else "build", "--quiet", "--locked", "--profile", profile]
    folder = CORE / os.environ.get("CARGO_TARGET_DIR", "target")
    if glibc:
        target = f"{os.uname().machine}-unknown-linux-gnu"
        arguments, folder = [*arguments, "--target", f"{target}.{glibc}"], folder / target
    environment = os.environ | {"PYO3_BUILD_EXTENSION_MODULE": "1"} | _rust()
    cargo = shutil.which("cargo", path=environment["PATH"])
    if cargo is None or subprocess.run([cargo, *arguments], cwd=CORE, env=environment).returncode:
        raise SystemExit(NO_RUST if cargo is None else "the core could not be compiled")
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    built = folder / ("debug" if profile == "dev" else profile) / f"lib_core{suffix}"
    if profile == "dev" and _differs(built, EXTENSION):
        new = EXTENSION.with_suffix(".new")  # processes that run now keep the old one
        shutil.copyfile(built, new)
        new.replace(EXTENSION)
    return built


def _cargo() -> str | None:
    return shutil.which("cargo", path=f"{os.environ['PATH']}:{Path.home() / '.cargo' / 'bin'}")


def _rust() -> dict[str, str]:
    """Environment in which cargo is found, once it was fetched if need be."""
    if (cargo := _cargo()) is not None:
        return {"PATH": f"{os.environ['PATH']}:{Path(cargo).parent}"}
    try:
        from puccinialin import setup_rust

        return {"PATH": os.environ["PATH"]} | setup_rust()
    except Exception:
        raise SystemExit(NO_RUST) from None


def _differs(one: Path, other: Path) -> bool:
    return not other.exists() or one.read_bytes() != other.read_bytes()


if __name__ == "__main__":
    build()
