"""Errors of other packages about damaged data become errors of this library that name the file and the place."""

from __future__ import annotations

import pathlib
import struct
import zlib

import hybridnet as mx
import numpy as np
import pytest


def _png(width: int, height: int) -> bytes:
    """Returns a PNG file whose header states this size, with the data of a few pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(40_000, 40_000), (20_000, 9_000), (2_000_000_000, 2_000_000_000)])
def test_images_that_unpack_to_too_much_are_refused(size: tuple[int, int], tmp_path: pathlib.Path) -> None:
    content = _png(*size)
    with pytest.raises(mx.errors.FormatError, match=r"image|PNG"):
        mx.image.imdecode(content)
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(mx.errors.FormatError, match=r"a\.png"):
        mx.image.imread(str(tmp_path / "a.png"))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_labels_with_too_few_numbers_name_file_and_sample(width: int, tmp_path: pathlib.Path) -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), image, img_fmt=".png")
    (tmp_path / "a.png").write_bytes(mx.recordio.unpack(packed)[1])
    lines = ["0\t1\t2\t3\ta.png", "1\t1\ta.png", "2\t1\t2\t3\ta.png"]
    (tmp_path / "list.lst").write_text("\n".join(lines) + "\n")
    batches = mx.image.ImageIter(
        3, (3, 4, 4), label_width=width, path_imglist=str(tmp_path / "list.lst"), path_root=str(tmp_path)
    )
    if width == 1:
        assert next(batches).label[0].asnumpy().tolist() == [1, 1, 1]
        return
    with pytest.raises(mx.errors.FormatError, match=rf"list\.lst.*sample 1.*{width} numbers.*got 1"):
        next(batches)


@pytest.mark.parametrize("first", ["nan", "inf", "-inf"])
def test_heads_of_detection_labels_that_are_no_numbers_are_refused(first: str) -> None:
    with pytest.raises(mx.errors.FormatError, match="ImageDetIter"):
        mx.image.ImageDetIter._parse_label(np.array([float(first), 5, 0, 0.1, 0.1, 0.9, 0.9], np.float32))


def test_a_parameter_without_a_value_is_named(tmp_path: pathlib.Path) -> None:
    """MXNet writes an array that was never set as a record of rank 0, which has no value."""
    record = struct.pack("<IiiI", 0xF993FAC9, 0, 0, 0)[:-4]
    name = b"weight"
    content = struct.pack("<QQQ", 0x112, 0, 1) + record + struct.pack("<QQ", 1, len(name)) + name
    (tmp_path / "net.params").write_bytes(content)
    assert mx.nd.load(str(tmp_path / "net.params")) == {"weight": None}
    net = mx.gluon.nn.Dense(2, use_bias=False, in_units=3)
    with pytest.raises(ValueError, match=r"weight.*without a value"):
        net.load_parameters(str(tmp_path / "net.params"))
