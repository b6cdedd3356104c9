"""Exports written to a folder, and the check of manifests."""

from functools import cache

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.registry import EXPORTS


@pytest.fixture(scope="session")
def check_manifest():
    """Check of a manifest by the schemas of Kubernetes itself; unknown fields are faults.

    A schema is read once: the definitions that all share are large.
    """
    validator = pytest.importorskip("kubernetes_validate")
    newest = validator.latest_version()
    with pytest.MonkeyPatch.context() as patch:
        read = cache(validator.utils.schema_contents)
        patch.setattr(validator.utils, "schema_contents", read)
        yield lambda document: validator.validate(document, newest, strict=True)


@pytest.fixture
def written(tmp_path):
    """Write an export of a named deployment into an empty folder, and return the folder."""

    def write(export, deployment="shop"):
        for name, text in EXPORTS[export].files(DEPLOYMENTS[deployment]).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write
