"""All readers of files, each with a function that writes a small valid file and one that reads it like a program."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import pathlib
import re
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import hybridnet as mx
import numpy as np
from hybridnet import gluon


@dataclass(frozen=True)
class Reader:
    """write(folder) returns the names of the files that may be damaged; read(folder) reads all files."""

    write: Callable[[pathlib.Path], list[str]]
    read: Callable[[pathlib.Path], object]


READERS: dict[str, Reader] = {}


def _reader(name: str, write: Callable[[pathlib.Path], list[str]]) -> Callable:
    def add(read: Callable[[pathlib.Path], object]) -> Callable:
        READERS[name] = Reader(write, read)
        return read

    return add


def _net() -> gluon.HybridBlock:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(2, 3, in_channels=1), gluon.nn.BatchNorm(in_channels=2), gluon.nn.Dense(3, in_units=8))
    net.initialize()
    return net


def _image(kind: str = ".png") -> bytes:
    pixels = np.random.RandomState(0).randint(0, 255, (12, 9, 3)).astype(np.uint8)
    return mx.recordio.unpack(mx.recordio.pack_img(mx.recordio.IRHeader(0, 1.0, 0, 0), pixels, img_fmt=kind))[1]


# --- arrays and models ------------------------------------------------------------------------------------------------


def _write_npz(folder: pathlib.Path) -> list[str]:
    np.savez(folder / "a.npz", x=np.arange(6.0).reshape(2, 3), y=np.array(3, np.int8))
    return ["a.npz"]


@_reader("npz", _write_npz)
def _read_npz(folder: pathlib.Path) -> object:
    return mx.nd.load(str(folder / "a.npz"))


def _write_npy(folder: pathlib.Path) -> list[str]:
    np.save(folder / "a.npy", np.arange(6.0).reshape(2, 3))
    return ["a.npy"]


@_reader("npy", _write_npy)
def _read_npy(folder: pathlib.Path) -> object:
    return mx.npx.load(str(folder / "a.npy"))


def _write_safetensors(folder: pathlib.Path) -> list[str]:
    arrays = {"x": mx.nd.ones((2, 3)), "y": mx.nd.zeros((4,), dtype="float16"), "z": mx.nd.array([[7]], dtype="int64")}
    mx.nd.save(str(folder / "a.safetensors"), arrays)
    return ["a.safetensors"]


@_reader("safetensors", _write_safetensors)
def _read_safetensors(folder: pathlib.Path) -> object:
    return mx.nd.load(str(folder / "a.safetensors"))


def _write_parameters(folder: pathlib.Path) -> list[str]:
    _net().save_parameters(str(folder / "net.params"))
    return ["net.params"]


@_reader("parameters", _write_parameters)
def _read_parameters(folder: pathlib.Path) -> object:
    return _net().load_parameters(str(folder / "net.params"))


def _write_block(folder: pathlib.Path) -> list[str]:
    _net().save(str(folder / "net"))
    return ["net-model.json", "net-model.params"]


@_reader("Block.load", _write_block)
def _read_block(folder: pathlib.Path) -> object:
    return _net().load(str(folder / "net"))


def _write_model(folder: pathlib.Path) -> list[str]:
    net = _net()
    net.hybridize()
    net(mx.nd.ones((1, 1, 4, 4)))
    net.export(str(folder / "m"))
    return ["m-symbol.json", "m-0000.params"]


@_reader("model", _write_model)
def _read_model(folder: pathlib.Path) -> object:
    block = gluon.SymbolBlock.imports(str(folder / "m-symbol.json"), ["data"], str(folder / "m-0000.params"))
    return block(mx.nd.ones((1, 1, 4, 4))).asnumpy()


@_reader("checkpoint", _write_model)
def _read_checkpoint(folder: pathlib.Path) -> object:
    symbol, args, auxs = mx.model.load_checkpoint(str(folder / "m"), 0)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", (1, 1, 4, 4))], for_training=False)
    return module.set_params(args, auxs, allow_missing=True, allow_extra=True)


def _write_symbol(folder: pathlib.Path) -> list[str]:
    def step(row, state):
        grown = mx.sym.tanh(row + state[0])
        return grown, [grown]

    data = mx.sym.var("data")
    outputs, states = mx.sym.contrib.foreach(step, data, [mx.sym.zeros((3,))])
    mx.sym.Group([outputs, *states]).save(str(folder / "s.json"))
    return ["s.json"]


@_reader("symbol", _write_symbol)
def _read_symbol(folder: pathlib.Path) -> object:
    """Loads a loop, binds it, and runs it forward and backward."""
    executor = mx.sym.load(str(folder / "s.json")).simple_bind(mx.cpu(), data=(2, 3))
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones(output.shape) for output in executor.outputs])
    return [output.asnumpy() for output in executor.outputs], [each.asnumpy() for each in executor.grad_arrays]


def _write_graph(folder: pathlib.Path) -> list[str]:
    net = _net()
    net.hybridize()
    net(mx.nd.ones((1, 1, 4, 4)))
    (folder / "graph.txt").write_text(net.graph().text())
    return ["graph.txt"]


@_reader("graph text", _write_graph)
def _read_graph(folder: pathlib.Path) -> object:
    return mx.rewrite.parse((folder / "graph.txt").read_bytes().decode("utf-8", "replace")).text()


# --- training states --------------------------------------------------------------------------------------------------


def _trainer() -> gluon.Trainer:
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    with mx.autograd.record():
        loss = net(mx.nd.ones((4, 3))).sum()
    loss.backward()
    trainer.step(4)
    return trainer


def _write_states(folder: pathlib.Path) -> list[str]:
    _trainer().save_states(str(folder / "t.states"))
    return ["t.states"]


@_reader("trainer states", _write_states)
def _read_states(folder: pathlib.Path) -> object:
    trainer = _trainer()
    trainer.load_states(str(folder / "t.states"))
    return trainer


def _write_training(folder: pathlib.Path) -> list[str]:
    """Writes the parts of a file of save_training() separately, because its checksums would detect all damage."""
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(np.arange(6.0)), 2, shuffle=True)
    gluon.save_training(str(folder / "whole"), net, trainer, loader, extra={"epoch": 3})
    content = (folder / "whole").read_bytes()
    (folder / "whole").unlink()
    end = 48 + int.from_bytes(content[8:16], "little")
    (folder / "header").write_bytes(content[48:end])
    begin = end
    for section in json.loads(content[48:end])["sections"]:
        (folder / section["name"]).write_bytes(content[begin : begin + section["bytes"]])
        begin += section["bytes"]
    return ["header", "parameters", "trainer"]


@_reader("training", _write_training)
def _read_training(folder: pathlib.Path) -> object:
    text, sections = (folder / "header").read_bytes(), b""
    for name in ("parameters", "trainer"):
        content = (folder / name).read_bytes()
        sections += content
        described = rb'{"name": "' + name.encode() + rb'", "bytes": \d+, "sha256": "[0-9a-f]*"}'
        true = {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        text = re.sub(described, json.dumps(true).encode(), text)
    whole = b"HNTRAIN1" + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest() + text + sections
    (folder / "whole").write_bytes(whole)
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(np.arange(6.0)), 2, shuffle=True)
    return gluon.load_training(str(folder / "whole"), net, trainer, loader), list(loader)


def _estimator() -> object:
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    kind = gluon.contrib.estimator.Estimator
    return kind(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=gluon.Trainer(net.collect_params(), "adam"))


def _fit(folder: pathlib.Path, epochs: int, resume: bool) -> None:
    data = gluon.data.ArrayDataset(np.ones((4, 3), np.float32), np.zeros(4, np.float32))
    handler = gluon.contrib.estimator.CheckpointHandler(str(folder), resume_from_checkpoint=resume)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        _estimator().fit(gluon.data.DataLoader(data, 2), epochs=epochs, event_handlers=[handler])


def _write_checkpoints(folder: pathlib.Path) -> list[str]:
    _fit(folder, 1, False)
    return sorted(path.name for path in folder.iterdir())


@_reader("CheckpointHandler", _write_checkpoints)
def _read_checkpoints(folder: pathlib.Path) -> object:
    with tempfile.TemporaryDirectory() as copy:  # resumed training adds checkpoints
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        return _fit(pathlib.Path(copy), 2, True)


# --- records and images -----------------------------------------------------------------------------------------------


def _write_records(folder: pathlib.Path) -> list[str]:
    writer = mx.recordio.MXIndexedRecordIO(str(folder / "r.idx"), str(folder / "r.rec"), "w")
    for i in range(4):
        label = float(i) if i % 2 else np.array([1, 5, 0.0, 0.1, 0.1, 0.5, 0.6][: 3 + i], np.float32)
        writer.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, label, i, 0), _image()))
    writer.close()
    return ["r.idx", "r.rec"]


@_reader("records", _write_records)
def _read_records(folder: pathlib.Path) -> object:
    reader = mx.recordio.MXRecordIO(str(folder / "r.rec"), "r")
    found = []
    while (record := reader.read()) is not None:
        found.append(mx.recordio.unpack(record))
    return found


@_reader("indexed records", _write_records)
def _read_indexed(folder: pathlib.Path) -> object:
    reader = mx.recordio.MXIndexedRecordIO(str(folder / "r.idx"), str(folder / "r.rec"), "r")
    return [mx.recordio.unpack_img(reader.read_idx(key)) for key in reader.keys]


def _write_image_records(folder: pathlib.Path) -> list[str]:
    writer = mx.recordio.MXIndexedRecordIO(str(folder / "r.idx"), str(folder / "r.rec"), "w")
    for i in range(4):
        writer.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, float(i), i, 0), _image()))
    writer.close()
    return ["r.idx", "r.rec"]


@_reader("ImageRecordIter", _write_image_records)
def _read_image_records(folder: pathlib.Path) -> object:
    batches = mx.io.ImageRecordIter(
        path_imgrec=str(folder / "r.rec"),
        path_imgidx=str(folder / "r.idx"),
        data_shape=(3, 8, 8),
        batch_size=2,
        preprocess_threads=1,
    )
    return [batch.data[0].asnumpy() for batch in batches]


@_reader("ImageRecordDataset", _write_image_records)
def _read_record_dataset(folder: pathlib.Path) -> object:
    data = gluon.data.vision.ImageRecordDataset(str(folder / "r.rec"))
    return [data[i][0].asnumpy() for i in range(len(data))]


def _write_list(folder: pathlib.Path) -> list[str]:
    (folder / "0.png").write_bytes(_image())
    (folder / "i.lst").write_text("0\t1.0\t0.png\n1\t2.0\t0.png\n")
    return ["i.lst", "0.png"]


@_reader("image list", _write_list)
def _read_list(folder: pathlib.Path) -> object:
    batches = mx.image.ImageIter(2, (3, 8, 8), path_imglist=str(folder / "i.lst"), path_root=str(folder))
    return [batch.data[0].asnumpy() for batch in batches]


def _write_folders(folder: pathlib.Path) -> list[str]:
    for kind in ("a", "b"):
        (folder / kind).mkdir()
        (folder / kind / "0.png").write_bytes(_image())
    return ["a/0.png"]


@_reader("ImageFolderDataset", _write_folders)
def _read_folders(folder: pathlib.Path) -> object:
    data = gluon.data.vision.ImageFolderDataset(str(folder))
    return [data[i][0].asnumpy() for i in range(len(data))]


def _write_detection_list(folder: pathlib.Path) -> list[str]:
    (folder / "0.png").write_bytes(_image())
    (folder / "i.lst").write_text("0\t2\t5\t0\t0.1\t0.1\t0.5\t0.5\t0.png\n1\t2\t5\t1\t0.2\t0.1\t0.5\t0.5\t0.png\n")
    return ["i.lst", "0.png"]


@_reader("detection list", _write_detection_list)
def _read_detection_list(folder: pathlib.Path) -> object:
    batches = mx.image.ImageDetIter(2, (3, 8, 8), path_imglist=str(folder / "i.lst"), path_root=str(folder))
    return [batch.label[0].asnumpy() for batch in batches]


for _kind in (".png", ".jpg"):

    def _write_image(folder: pathlib.Path, kind: str = _kind) -> list[str]:
        (folder / "image").write_bytes(_image(kind))
        return ["image"]

    @_reader(f"imdecode {_kind}", _write_image)
    def _read_image(folder: pathlib.Path) -> object:
        return mx.image.imdecode((folder / "image").read_bytes()).asnumpy()

    @_reader(f"imread {_kind}", _write_image)
    def _read_image_file(folder: pathlib.Path) -> object:
        return mx.image.imread(str(folder / "image")).asnumpy()


# --- tables -----------------------------------------------------------------------------------------------------------


def _write_mnist(folder: pathlib.Path) -> list[str]:
    images = np.arange(2 * 784, dtype=np.uint8).tobytes()
    (folder / "i").write_bytes(struct.pack(">IIII", 2051, 2, 28, 28) + images)
    (folder / "l.gz").write_bytes(gzip.compress(struct.pack(">II", 2049, 2) + b"\1\2", mtime=0))
    return ["i", "l.gz"]


@_reader("MNISTIter", _write_mnist)
def _read_mnist(folder: pathlib.Path) -> object:
    batches = mx.io.MNISTIter(image=str(folder / "i"), label=str(folder / "l.gz"), batch_size=1)
    return [batch.data[0].asnumpy() for batch in batches]


def _write_mnist_dataset(folder: pathlib.Path) -> list[str]:
    images = np.arange(2 * 784, dtype=np.uint8).tobytes()
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(struct.pack(">IIII", 2051, 2, 28, 28) + images))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">II", 2049, 2) + b"\1\2"))
    return ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]


@_reader("vision.MNIST", _write_mnist_dataset)
def _read_mnist_dataset(folder: pathlib.Path) -> object:
    return gluon.data.vision.MNIST(str(folder), train=False)[1]


def _write_cifar(folder: pathlib.Path) -> list[str]:
    (folder / "test_batch.bin").write_bytes(bytes(range(256)) * 24 + b"\0" * 2)
    return ["test_batch.bin"]


@_reader("vision.CIFAR10", _write_cifar)
def _read_cifar(folder: pathlib.Path) -> object:
    return gluon.data.vision.CIFAR10(str(folder), train=False)[1]


def _write_svm(folder: pathlib.Path) -> list[str]:
    (folder / "d").write_text("1 0:0.5 3:1.5\n0 1:2\n1\n")
    (folder / "l").write_text("1\n0\n3\n")
    return ["d", "l"]


@_reader("LibSVMIter", _write_svm)
def _read_svm(folder: pathlib.Path) -> object:
    batches = mx.io.LibSVMIter(str(folder / "d"), (4,), label_libsvm=str(folder / "l"), batch_size=1)
    return [batch.data[0].asnumpy() for batch in batches]


def _write_csv(folder: pathlib.Path) -> list[str]:
    (folder / "d").write_text("1,2,3\n4,5,6\n")
    (folder / "l").write_text("0\n1\n")
    return ["d", "l"]


@_reader("CSVIter", _write_csv)
def _read_csv(folder: pathlib.Path) -> object:
    batches = mx.io.CSVIter(str(folder / "d"), (3,), label_csv=str(folder / "l"), batch_size=1)
    return [batch.data[0].asnumpy() for batch in batches]


def _write_embedding(folder: pathlib.Path) -> list[str]:
    (folder / "e.txt").write_text("a 0.1 0.2 0.3\nb 1 2 3\nc 4 5 6\n")
    return ["e.txt"]


@_reader("CustomEmbedding", _write_embedding)
def _read_embedding(folder: pathlib.Path) -> object:
    return mx.contrib.text.embedding.CustomEmbedding(str(folder / "e.txt")).idx_to_vec.asnumpy()


# --- from memory ------------------------------------------------------------------------------------------------------


def _write_buffer(folder: pathlib.Path) -> list[str]:
    mx.nd.save(str(folder / "b"), {"x": mx.nd.ones((2, 3)), "y": mx.nd.zeros((1,), dtype="int8")})
    return ["b"]


@_reader("load_frombuffer", _write_buffer)
def _read_buffer(folder: pathlib.Path) -> object:
    arrays = mx.nd.load_frombuffer((folder / "b").read_bytes())
    return [array.asnumpy() for array in (arrays.values() if isinstance(arrays, dict) else arrays)]
