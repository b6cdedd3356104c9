"""Data sets in shards, which are generated in parallel; the graphs do not depend on the shards.

During the generation, the log ``name.manifest.jsonl`` has the plan and the complete shards, so that
a stopped run continues with the missing shards.
"""

import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from streamplace.errors import FormatError, SettingError
from streamplace.families.dataset import (
    count_split,
    manifest_of,
    packed_sha256,
    values_of,
)
from streamplace.families.parameters import Parameters
from streamplace.families.registry import FAMILIES
from streamplace.io.files import appending, is_file, json_line, read_lines, spot, write_bytes
from streamplace.io.lines import shard_path, shards_of_any_number
from streamplace.io.manifests import Manifest, Shard, manifest_path, write_manifest
from streamplace.io.parsing import parse_as
from streamplace.io.problems import problem_line
from streamplace.io.suffixes import LINES

MAX_SHARDS = 99_999
START = b'{"family":'
"""Beginning of the log, in its plan."""
Mapped = Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]
"""Function like `map` over numbers."""


@dataclass(frozen=True, slots=True)
class _MadeShard(Shard):
    """A complete shard, as a line of the log."""

    number: Annotated[int, Field(ge=0)]
    splits: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the shards of a data set by their numbers."""

    family: str
    parameters: Any
    seed: int
    path: Path
    shards: int

    def __call__(self, number: int) -> tuple[_MadeShard, bytes]:
        """Shard of a number, and its content."""
        first, end = (k * self.parameters.n_graphs // self.shards for k in (number, number + 1))
        graphs = FAMILIES[self.family].generate(self.parameters, self.seed, first)
        splits: Counter[str] = Counter()
        content = bytearray()
        for item in islice(graphs, end - first):
            content += problem_line(item)
            count_split(item, splits)
        packed = _packed(bytes(content)) if self.path.name.endswith(".gz") else bytes(content)
        of_file, of_content = (hashlib.sha256(data).hexdigest() for data in (packed, content))
        name = shard_path(self.path, number, self.shards).name
        return _MadeShard(name, end - first, of_file, of_content, number, dict(splits)), packed


def write_shards(
    family: str,
    parameters: Parameters,
    seed: int,
    path: Path,
    shards: int,
    mapped: Mapped = map,
    on_shard: Callable[[], None] = lambda: None,
) -> Manifest:
    """Generate a data set into shards of equally many graphs, and write its manifest beside them.

    The shards of ``set.jsonl.gz`` are ``set-00000-of-00016.jsonl.gz`` and so on. ``mapped`` makes
    them, perhaps on other machines; this process writes them, and calls ``on_shard`` after each.
    """
    _check(path, shards)
    maker = _Maker(family, parameters, seed, path, shards)
    facts = {"family": family, "parameters": values_of(parameters), "seed": seed}
    plan = {**facts, "shards": shards, "streamplace": version("streamplace")}
    log = manifest_path(path).with_suffix(".jsonl")
    with appending(log, START) as append:
        done = _done(log, plan, path, shards)
        if not done:
            log.write_bytes(b"")
            append(json_line(plan).encode())
        missing = [number for number in range(shards) if number not in done]
        for _ in done:
            on_shard()
        for shard, content in mapped(maker, missing):
            write_bytes(path.with_name(shard.name), content)
            done[shard.number] = shard
            append(json_line(asdict(shard)).encode())
            on_shard()
        made = [done[number] for number in range(shards)]
        splits = sum((Counter(shard.splits) for shard in made), Counter[str]())
        plain = tuple(
            Shard(shard.name, shard.graphs, shard.packed_sha256, shard.content_sha256)
            for shard in made
        )
        manifest = manifest_of(
            family, parameters, seed, path, sum(shard.graphs for shard in made), splits, plain
        )
        write_manifest(manifest, manifest_path(path))
        log.unlink()
    return manifest


def _check(path: Path, shards: int) -> None:
    if not path.name.endswith(LINES):
        raise SettingError(f"{spot(path)}: the name of shards must end in .jsonl or .jsonl.gz")
    if not 1 <= shards <= MAX_SHARDS:
        raise SettingError(f"{shards} shards; there must be between 1 and {MAX_SHARDS}")
    if is_file(path):
        raise SettingError(
            f"{spot(path)}: exists already as a single file; remove it or name another"
        )
    beside = {shard.name for shard in shards_of_any_number(path)}
    ours = {shard_path(path, number, shards).name for number in range(shards)}
    if foreign := sorted(beside - ours):
        raise SettingError(
            f"{spot(path.with_name(foreign[0]))}: is a shard of a data set of this name with "
            "another number of shards; remove it or name another"
        )


def _done(log: Path, plan: dict[str, Any], path: Path, shards: int) -> dict[int, _MadeShard]:
    """Unchanged shards of an earlier run of the same plan, by number."""
    lines = [line for _, line in read_lines(log)]
    if lines and not lines[0].startswith(START):
        raise FormatError(f"{spot(log)}: is not the log of a data set; remove it or rename it")
    if not lines or lines[0].rstrip() != json_line(plan).encode().rstrip():
        return {}
    done = {}
    for line in lines[1:]:
        try:
            shard = parse_as(_MadeShard, line, spot(log))
        except FormatError:
            continue  # it is made again
        target = shard_path(path, shard.number, shards)
        is_ours = shard.number < shards and shard.name == target.name
        if is_ours and is_file(target) and packed_sha256(target) == shard.packed_sha256:
            done[shard.number] = shard
    return done


def _packed(content: bytes) -> bytes:
    packed = BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=0) as file:
        file.write(content)
    return packed.getvalue()
