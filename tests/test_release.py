"""What a release says of itself: metadata, links, versions."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import streamplace

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HOST = re.compile(r"https?://([a-z0-9.-]+)", re.IGNORECASE)
SOURCES = {
    "arxiv.org", "doi.org", "papers.nips.cc", "openreview.net",  # papers
    "docs.ray.io", "nightlies.apache.org", "www.apache.org", "prometheus.io", "docs.oracle.com",
    "wfcommons.org", "www.kasahara.cs.waseda.ac.jp", "ui.perfetto.dev", "github.com",
    "www.w3.org", "graphml.graphdrawing.org", "download.pytorch.org", "rustup.rs",
}  # fmt: skip
"""Hosts of papers, tools and the documentation of libraries: none of them is this project's."""


def links(page):
    """Targets of all links and pictures of a page, without those in its code."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return LINK.findall(text)


def anchors(page):
    """What stands after a # in links to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files_of_the_repository_or_to_sources(page):
    for link in links(page):
        if HOST.match(link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def test_no_file_names_an_outside_host_that_is_not_a_source():
    tracked = subprocess.run(
        ["git", "ls-files", "*.md", "*.toml", "*.yml", "*.yaml", "*.cff", "*.ipynb", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    there = [ROOT / name for name in tracked if not name.startswith("tests/")]
    files = [file for file in there if file.exists()] or PAGES
    for file in files:
        text = file.read_text(encoding="utf-8")
        hosts = {host.lower().rstrip(".") for host in HOST.findall(text) if "." in host}
        strange = {h for h in hosts - SOURCES if not re.match(r"(127\.|.*\.example$)", h)}
        assert strange == set(), file
        assert not re.search(r"//[^\s)]*streamplace", text), file  # an address of its own


def test_the_description_of_the_package_has_no_picture_and_no_link_into_the_repository():
    """An index shows it away from the repository; what it shows is what the build makes of it."""
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager
    from readme_renderer.markdown import render

    description = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    page = render(description, variant="GFM")
    assert "<table>" in page
    assert "<img" not in page
    targets = re.findall(r'href="([^#"][^"]*)"', page)
    assert len(targets) >= 6
    assert [target for target in targets if not target.startswith("https://")] == []


def test_the_version_is_the_same_everywhere():
    version = streamplace.__version__
    assert PROJECT["version"] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"\b{re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"))


def requirements(*texts):
    """Name → limits of its version."""
    read = map(Requirement, texts)
    return {one.name: {str(limit) for limit in one.specifier} for one in read}


def test_the_conda_recipe_requires_what_the_package_does():
    """And has its version, license and command; three packages have other names there."""
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == PROJECT["version"]
    about = recipe["about"]
    assert (about["license"], about["summary"]) == (PROJECT["license"], PROJECT["description"])
    (name, target), *_ = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}"]
    # conda has no extras; on Kubernetes, Flink needs further packages
    extras = PROJECT["optional-dependencies"]
    flink = [x for x in extras["flink"] if x[:4] in ("http", "prom")]
    python = f"python{PROJECT['requires-python']}"
    required = requirements(*PROJECT["dependencies"], *extras["matplotlib"], *flink, python)
    names = {"matplotlib": "matplotlib-base", "ortools": "ortools-python"}
    for pypi, conda in (names | {"prometheus-client": "prometheus_client"}).items():
        required[conda] = required.pop(pypi)
    assert requirements(*recipe["requirements"]["run"]) == required
    system = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    host = requirements(*recipe["requirements"]["host"][1:])
    assert host == requirements("pip", "python-abi3", *system["requires"])


BROUGHT = {
    **{"pydantic_core": "pydantic", "pandas": "ortools", "google": "onnx"},
    "yaml": "lightkube",
}
"""Packages that come with another one, which needs them or contains them."""


def test_every_imported_package_is_declared():
    imported = set()
    for file in [*(ROOT / "streamplace").rglob("*.py"), *(ROOT / "sim").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    packages = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names
    extras = [x for part in PROJECT["optional-dependencies"].values() for x in part]
    declared = {name.replace("-", "_") for name in requirements(*PROJECT["dependencies"], *extras)}
    needed = {BROUGHT.get(name, name) for name in packages}
    assert needed - declared <= {"streamplace", "streamsim", "pyflink", "_typeshed"}


def test_packages_whose_private_interfaces_are_used_are_capped():
    """A new version may change them without a word."""
    sources = [*(ROOT / "streamplace").rglob("*.py"), *(ROOT / "sim").rglob("*.py")]
    private = re.compile(r"^\s*from (\w+(?=(?:\.\w+)*\._))", re.MULTILINE)
    used = {name for file in sources for name in private.findall(file.read_text("utf-8"))}
    used -= {"streamplace", "streamsim"}
    assert used == {"torch"}
    extras = [x for part in PROJECT["optional-dependencies"].values() for x in part]
    limits = requirements(*PROJECT["dependencies"], *extras)
    assert {name for name in used if not any(x.startswith("<") for x in limits[name])} == set()
