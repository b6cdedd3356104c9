"""What a release says of itself: metadata, links, versions."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import streamplace

ROOT = Path(__file__).parents[1]
SITE = "https://streamplace.github.io/streamplace/"
FILES = re.compile(r"https://(?:raw\.githubusercontent|github)\.com/streamplace/streamplace/"
                   r"(?:blob/)?main/([\w./-]+)")  # fmt: skip
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def links() -> list[str]:
    """Targets of all links and pictures of the README, which is PyPI's page as well."""
    return re.findall(r"\]\(([^)\s]+)\)", README)


def test_readme_links_work_anywhere() -> None:
    assert len(links()) > 20
    assert [link for link in links() if not link.startswith("https://")] == []


@pytest.mark.parametrize("link", sorted({x for x in links() if x.startswith(SITE)}))
def test_a_page_that_the_readme_links_to_exists(link: str) -> None:
    """Pages of the site are files in docs/; what stands after a # is a heading."""
    page, _, anchor = link.removeprefix(SITE).partition("#")
    text = (ROOT / "docs" / page.replace(".html", ".md")).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }
    assert not anchor or anchor in slugs


@pytest.mark.parametrize("link", sorted({x for x in links() if FILES.match(x)}))
def test_a_file_that_the_readme_links_to_exists(link: str) -> None:
    match = FILES.match(link)
    assert match is not None
    assert (ROOT / match[1]).is_file()


def test_the_version_is_the_same_everywhere() -> None:
    version = streamplace.__version__
    assert PROJECT["version"] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"\b{re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"))


def test_the_metadata_of_the_package_is_complete() -> None:
    assert PROJECT["authors"] == [{"name": "The streamplace developers"}]
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(PROJECT["urls"])
    classifiers = "\n".join(PROJECT["classifiers"])
    for minor in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    for word in ("Operating System ::", "Topic ::", "Intended Audience ::"):
        assert word in classifiers


def requirements(*texts: str) -> dict[str, set[str]]:
    """Name → limits of its version."""
    read = map(Requirement, texts)
    return {one.name: {str(limit) for limit in one.specifier} for one in read}


def test_the_conda_recipe_requires_what_the_package_does() -> None:
    """And has its version, license and command; two packages have other names in conda-forge."""
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == PROJECT["version"]
    about = recipe["about"]
    assert (about["license"], about["summary"]) == (PROJECT["license"], PROJECT["description"])
    (name, target), *_ = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}"]
    required = requirements(*PROJECT["dependencies"], f"python{PROJECT['requires-python']}")
    for pypi, conda in {"matplotlib": "matplotlib-base", "ortools": "ortools-python"}.items():
        required[conda] = required.pop(pypi)
    assert requirements(*recipe["requirements"]["run"]) == required
    system = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    host = requirements(*recipe["requirements"]["host"][1:])
    assert host == requirements("pip", *system["requires"])


def test_packages_whose_private_interfaces_are_used_are_capped() -> None:
    """A new version may change them without a word. What numba calls core is not documented."""
    sources = [*(ROOT / "streamplace").rglob("*.py"), *(ROOT / "sim").rglob("*.py")]
    private = re.compile(r"^\s*from (numba(?=\.core)|\w+(?=(?:\.\w+)*\._))", re.MULTILINE)
    used = {name for file in sources for name in private.findall(file.read_text("utf-8"))}
    used.remove("streamplace")
    assert used == {"numba", "ray", "torch"}
    extras = [x for part in PROJECT["optional-dependencies"].values() for x in part]
    limits = requirements(*PROJECT["dependencies"], *extras)
    assert {name for name in used if not any(x.startswith("<") for x in limits[name])} == set()
