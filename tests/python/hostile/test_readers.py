"""A damaged file of any kind is read or refused with an error of the library: no crash, no hang, no other exception."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import time

import hybridnet as mx
import pytest
from hybridnet import _files

from hostile.readers import READERS

TESTS = pathlib.Path(__file__).resolve().parents[1]


def _attack(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TESTS), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "hostile.run", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=250,
    )


def test_damaged_files_are_read_or_refused() -> None:
    done = _attack("--count", "40", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count("refused") == len(READERS)


# The program reads the bytes itself, or a folder: CheckpointHandler resumes from the files that exist.
_NOT_BY_NAME = {"imdecode .png", "imdecode .jpg", "load_frombuffer", "training", "graph text", "CheckpointHandler"}
_NOT_NEEDED = {("records", "r.idx"), ("ImageRecordIter", "r.idx"), ("ImageFolderDataset", "a/0.png")}
_TEXTS = {("vision.CIFAR10", "test_batch.bin"): "cifar-10-binary.tar.gz"}  # this archive would be unpacked instead


@pytest.mark.parametrize("name", sorted(READERS.keys() - _NOT_BY_NAME))
def test_a_missing_file_is_an_error_that_names_it(name: str, tmp_path: pathlib.Path) -> None:
    for victim in READERS[name].write(tmp_path):
        content = (tmp_path / victim).read_bytes()
        (tmp_path / victim).unlink()
        if (name, victim) in _NOT_NEEDED:
            READERS[name].read(tmp_path)
        else:
            text = _TEXTS.get((name, victim), victim.removesuffix(".gz"))
            with pytest.raises(mx.MXNetError, match=re.escape(text)):
                READERS[name].read(tmp_path)
        (tmp_path / victim).write_bytes(content)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: pathlib.Path) -> None:
    target = tmp_path / "states"
    target.write_bytes(b"old")
    target.chmod(0o640)
    with pytest.raises(ZeroDivisionError), _files.replacing(target, "test") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old"
    with _files.replacing(target, "test") as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["states"]


def test_a_link_stays_a_link_when_its_file_is_replaced(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with _files.replacing(tmp_path / "link", "test") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: pathlib.Path) -> None:
    """Otherwise root could replace a device in /dev by a file."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with _files.replacing(tmp_path / "pipe", "test") as file:
        file.write(b"text")
    assert os.read(reader, 8) == b"text"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_unreadable_and_unwritable_files_are_errors_that_name_the_caller(tmp_path: pathlib.Path) -> None:
    with (
        pytest.raises(mx.errors.FileError, match=r"Owner: cannot write '.*none/x'"),
        _files.replacing(tmp_path / "none" / "x", "Owner"),
    ):
        pass
    for name in (str(tmp_path / "none"), str(tmp_path), "a\0b"):
        with pytest.raises(mx.errors.FileError, match="Owner: cannot read"):
            _files.read_bytes(name, "Owner")
        with pytest.raises(mx.errors.FileError, match="Owner: cannot read"):
            list(_files.read_lines(name, "Owner"))
    (tmp_path / "latin").write_bytes("x\né\n".encode("latin-1"))
    with pytest.raises(mx.errors.FormatError, match=r"Owner: .*latin', behind line"):
        _files.read_text(tmp_path / "latin", "Owner")
    assert _files.read_text(tmp_path / "latin", "Owner", "latin-1") == "x\né\n"


KILLED = """
import os, signal, sys, hybridnet as mx
from hybridnet import gluon
net = gluon.nn.Dense(200, in_units=200)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "adam")
with mx.autograd.record():
    loss = net(mx.nd.ones((2, 200))).sum()
loss.backward()
trainer.step(2)
print("ready", flush=True)
while True:
    trainer.save_states(sys.argv[1])
    net.save_parameters(sys.argv[2])
"""


def test_states_survive_a_kill_at_any_moment(tmp_path: pathlib.Path) -> None:
    states, parameters = tmp_path / "t.states", tmp_path / "t.params"
    net = mx.gluon.nn.Dense(200, in_units=200)
    for attempt in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(states), str(parameters)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        if attempt == 0:
            while not parameters.exists():
                pass
        else:
            time.sleep(0.011 * attempt)
        child.kill()
        child.wait()
        child.stdout.close()
        net.load_parameters(str(parameters))
        trainer = mx.gluon.Trainer(net.collect_params(), "adam")
        trainer.load_states(str(states))
        shapes = {state[0].shape for state in trainer._updaters[0].states.values()}
        assert shapes == {(200, 200), (200,)}
