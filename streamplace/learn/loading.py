"""Weights that come with streamplace, beside the models that they belong to."""

from pathlib import Path

from streamplace.errors import SettingError
from streamplace.io.weights import SUFFIX
from streamplace.model.messages import quoted

MODELS_FOLDER = Path(__file__).parent / "models"


def shipped(name: str) -> Path:
    """File of the weights that come with streamplace for a model."""
    folders = sorted(folder for folder in MODELS_FOLDER.iterdir() if folder.is_dir())
    paths = (folder / f"{name}{SUFFIX}" for folder in folders)
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise SettingError(
            f"no weights of {quoted(name)} come with streamplace; train it (streamplace train "
            f"{name}) and name the file: --weights FILE"
        )
    return path
