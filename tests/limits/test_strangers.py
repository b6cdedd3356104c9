"""Models from strangers: nothing that they hold is run, and no file that they name is opened."""

import os
import pickle
import zipfile
from pathlib import Path

import pytest

from streamplace.io.registry import FORMATS

MARK = "executed"


class Payload:
    """What runs a command where it is unpickled."""

    def __reduce__(self):
        """Leave a mark in the working folder."""
        return os.system, (f"touch {MARK}",)


def with_external_weights(location, offset, length):
    """ONNX model whose weights lie in another file."""
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    weights = onnx.TensorProto(name="w", data_type=1, dims=[2, 2], data_location=1)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        weights.external_data.add(key=key, value=value)
    ends = [make.make_tensor_value_info(name, 1, [2, 2]) for name in "xy"]
    node = make.make_node("MatMul", ["x", "w"], ["y"], name="n")
    graph = make.make_graph([node], "g", ends[:1], ends[1:], [weights])
    return make.make_model(graph).SerializeToString()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("location", "offset", "length"),
    [
        ("pipe", "0", "16"),
        ("{folder}/pipe", "0", "16"),
        ("../{name}/pipe", str(2**70), str(2**70)),
        ("link", "-1", "many"),
    ],
)
def test_no_onnx_model_opens_files(tmp_path, location, offset, length):
    """Be they above, absolute, linked or far out: whoever opens the pipe waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    location = location.format(folder=tmp_path, name=tmp_path.name)
    (tmp_path / "m.onnx").write_bytes(with_external_weights(location, offset, length))
    (graph,) = FORMATS["onnx"].read(tmp_path / "m.onnx")
    assert graph.operators.memory.tolist() == [0, 2 * 2 * 4]


def test_no_module_beside_a_model_runs(tmp_path, monkeypatch):
    (tmp_path / "m.onnx").write_bytes(with_external_weights("w.bin", "0", "16"))
    (tmp_path / "onnx.py").write_text(f"open({MARK!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert len(list(FORMATS["onnx"].read(Path("m.onnx")))) == 1
    assert not Path(MARK).exists()


def exported_archive(path):
    """Archive like that of torch.export.save, with a pickle in every place that may hold one."""
    content = pickle.dumps(Payload())
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("archive_format", "byteorder", "data.pkl", "models/model.json", "version"):
            archive.writestr(name, content)
        archive.writestr("data/weights/model.pt", content)


def plain_pickle(path):
    """Pickle as torch.save wrote them."""
    path.write_bytes(pickle.dumps(Payload()))


@pytest.mark.parametrize("write", [exported_archive, plain_pickle])
@pytest.mark.parametrize(
    "words",
    [
        "import torch evil.pt2 -o g.json",
        "import torch evil.pt2:load -o g.json",
        "import onnx evil.pt2 -o g.json",
        "place g0.json --placer pilot:weights=evil.pt2",
        "train dream --data g0.json --start evil.pt2 --out x",
        "describe evil.pt2",
    ],
)
def test_no_pickle_is_loaded(refusal, tmp_path, write, words):
    write(tmp_path / "evil.pt2")
    (tmp_path / "g0.json").write_text('{"operators":[{"name":"a","rate":1},{"name":"b","rate":1}]}')
    refusal(*words.split())
    assert not (tmp_path / MARK).exists()


def test_such_a_pickle_runs_its_command(tmp_path, monkeypatch):
    """Otherwise the tests above would prove nothing."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Payload()))
    assert Path(MARK).exists()
