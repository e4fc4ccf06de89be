"""RecordIO files: records that contain the magic number, indices, broken files, packed images."""

from __future__ import annotations

import multiprocessing
import pickle
import struct

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import recordio

MAGIC = struct.pack("<I", 0xCED7230A)
RECORDS = [b"", b"abc", b"abcd", MAGIC, b"1234" + MAGIC + b"56", b"12" + MAGIC, MAGIC * 3 + b"x", bytes(range(256)) * 9]


def write(path, records=RECORDS):
    with recordio.MXRecordIO(str(path), "w") as writer:
        for record in records:
            writer.write(record)


def test_records_come_back(tmp_path):
    file = tmp_path / "data.rec"
    write(file)
    reader = recordio.MXRecordIO(str(file), "r")
    for _ in range(2):
        assert [reader.read() for _ in RECORDS] == RECORDS
        assert reader.read() is None
        reader.reset()


def test_the_layout_is_that_of_mxnet(tmp_path):
    file = tmp_path / "data.rec"
    write(file, [b"abcde", b"1234" + MAGIC + b"56"])
    expected = MAGIC + struct.pack("<I", 5) + b"abcde\0\0\0"
    expected += MAGIC + struct.pack("<I", 1 << 29 | 4) + b"1234" + MAGIC + struct.pack("<I", 3 << 29 | 2) + b"56\0\0"
    assert file.read_bytes() == expected


def test_indices_find_records(tmp_path):
    index, file = str(tmp_path / "data.idx"), str(tmp_path / "data.rec")
    writer = recordio.MXIndexedRecordIO(index, file, "w")
    for i, record in enumerate(RECORDS):
        writer.write_idx(10 + i, record)
    writer.close()
    reader = recordio.MXIndexedRecordIO(index, file, "r")
    assert reader.keys == list(range(10, 10 + len(RECORDS)))
    for i in reversed(range(len(RECORDS))):
        assert reader.read_idx(10 + i) == RECORDS[i]
    with pytest.raises(KeyError):
        reader.read_idx(3)
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read_idx(12) == RECORDS[2]
    (tmp_path / "data.idx").write_text("1\tx\n")
    with pytest.raises(mx.errors.FormatError, match="line 1"):
        recordio.MXIndexedRecordIO(index, file, "r")


def test_readers_work_in_forked_processes(tmp_path):
    index, file = str(tmp_path / "data.idx"), str(tmp_path / "data.rec")
    with recordio.MXIndexedRecordIO(index, file, "w") as writer:
        for i in range(20):
            writer.write_idx(i, b"%d" % i)
    dataset = mx.gluon.data.RecordFileDataset(file)
    assert len(dataset) == 20
    loader = mx.gluon.data.DataLoader(dataset, 4, batchify_fn=list, num_workers=2)
    assert [record for batch in loader for record in batch] == [b"%d" % i for i in range(20)]
    assert dataset[7] == b"7"


def test_writers_refuse_other_processes(tmp_path):
    writer = recordio.MXRecordIO(str(tmp_path / "data.rec"), "w")
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def child():
        try:
            writer.write(b"x")
        except RuntimeError as error:
            results.put(str(error))

    process = context.Process(target=child)
    process.start()
    assert "Forbidden operation" in results.get(timeout=10)
    process.join()


def test_broken_files_are_errors(tmp_path):
    file = tmp_path / "data.rec"
    write(file, [b"abcdefgh"])
    content = file.read_bytes()
    for broken in (
        content[:-4],
        content[:6],
        b"x" + content,
        content[:4] + struct.pack("<I", 1 << 29 | 8) + content[8:],
    ):
        file.write_bytes(broken)
        with pytest.raises(mx.errors.FormatError, match=r"data\.rec"):
            recordio.MXRecordIO(str(file), "r").read()
    with pytest.raises(OSError, match="nowhere"):
        recordio.MXRecordIO(str(tmp_path / "nowhere"), "r")
    with pytest.raises(ValueError, match="Invalid flag a"):
        recordio.MXRecordIO(str(file), "a")
    with pytest.raises(ValueError, match="open for reading"):
        recordio.MXRecordIO(str(file), "r").write(b"x")
    with pytest.raises(ValueError, match="open for writing"):
        recordio.MXRecordIO(str(file), "w").read()


def test_headers_are_packed():
    header, content = recordio.unpack(recordio.pack(recordio.IRHeader(0, 4.5, 7, 0), b"data"))
    assert (header.flag, header.label, header.id, content) == (0, 4.5, 7, b"data")
    header, content = recordio.unpack(recordio.pack((0, [1, 2, 3], 7, 0), b"data"))
    assert header.flag == 3
    assert header.label.tolist() == [1, 2, 3]
    assert content == b"data"
    with pytest.raises(mx.errors.FormatError, match="at least"):
        recordio.unpack(b"short")
    with pytest.raises(mx.errors.FormatError, match="labels do not fit"):
        recordio.unpack(recordio.pack((0, [1, 2, 3], 7, 0), b"")[:-4])


def test_images_are_packed_blue_first(rng):
    image = rng.integers(0, 256, size=(5, 4, 3)).astype(np.uint8)
    record = recordio.pack_img((0, 1.0, 0, 0), image, quality=3, img_fmt=".png")
    header, back = recordio.unpack_img(record)
    assert header.label == 1
    np.testing.assert_array_equal(back, image)
    decoded = mx.image.imdecode(recordio.unpack(record)[1]).asnumpy()
    np.testing.assert_array_equal(decoded, image[:, :, ::-1])
    gray = recordio.pack_img((0, 1.0, 0, 0), image[:, :, 0], quality=3, img_fmt=".png")
    np.testing.assert_array_equal(recordio.unpack_img(gray)[1], image[:, :, 0])


# -- iterators over records -----------------------------------------------------------------------------------------


def image_file(tmp_path, images, labels):
    index, file = str(tmp_path / "data.idx"), str(tmp_path / "data.rec")
    with recordio.MXIndexedRecordIO(index, file, "w") as writer:
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            writer.write_idx(i, recordio.pack_img((0, label, i, 0), image[:, :, ::-1], 1, ".png"))
    return index, file


@pytest.mark.parametrize("with_index", [True, False])
def test_image_records_make_batches(tmp_path, with_index, rng):
    images = rng.integers(0, 256, size=(5, 8, 9, 3)).astype(np.uint8)
    index, file = image_file(tmp_path, images, range(5))
    it = mx.io.ImageRecordIter(
        path_imgrec=file,
        path_imgidx=index if with_index else "",
        data_shape=(3, 6, 5),
        batch_size=2,
        mean_r=10,
        mean_g=20,
        mean_b=30,
        std_r=2,
        scale=0.5,
    )
    assert it.provide_data[0].shape == (2, 3, 6, 5)
    middle = images[:, 1:7, 2:7].astype("float32")
    expected = ((middle - [10, 20, 30]) / [2, 1, 1] * 0.5).transpose(0, 3, 1, 2)
    for _ in range(2):
        batches = list(it)
        assert [batch.pad for batch in batches] == [0, 0, 1]
        assert [batch.label[0].asnumpy().tolist() for batch in batches] == [[0, 1], [2, 3], [4, 0]]
        got = np.concatenate([batch.data[0].asnumpy() for batch in batches])
        np.testing.assert_allclose(got, expected[[0, 1, 2, 3, 4, 0]], rtol=1e-5)
        it.reset()


def test_image_records_are_augmented_shuffled_and_parted(tmp_path, rng):
    images = rng.integers(0, 256, size=(8, 8, 8, 3)).astype(np.uint8)
    index, file = image_file(tmp_path, images, [[i, i + 10] for i in range(8)])
    common = {"path_imgrec": file, "path_imgidx": index, "data_shape": (3, 8, 8), "label_width": 2}
    it = mx.io.ImageRecordIter(batch_size=8, shuffle=True, seed=3, rand_mirror=True, **common)
    batch = next(it)
    labels = batch.label[0].asnumpy()
    order = labels[:, 0].astype(int)
    assert sorted(order) == list(range(8))
    assert (labels[:, 1] == labels[:, 0] + 10).all()
    mirrored = 0
    for row, i in zip(batch.data[0].asnumpy(), order, strict=True):
        image = images[i].transpose(2, 0, 1)
        mirrored += (row == image[:, :, ::-1]).all()
        assert (row == image).all() or (row == image[:, :, ::-1]).all()
    assert 0 < mirrored < 8
    again = next(mx.io.ImageRecordIter(batch_size=8, shuffle=True, seed=3, rand_mirror=True, **common))
    np.testing.assert_array_equal(batch.data[0].asnumpy(), again.data[0].asnumpy())
    part = next(mx.io.ImageRecordIter(batch_size=4, part_index=1, num_parts=2, **common))
    assert part.label[0].asnumpy()[:, 0].tolist() == [4, 5, 6, 7]
    crop = next(mx.io.ImageRecordIter(batch_size=8, rand_crop=True, **{**common, "data_shape": (3, 4, 4)}))
    assert crop.data[0].shape == (8, 3, 4, 4)
    assert next(mx.io.ImageRecordUInt8Iter(batch_size=2, **common)).data[0].dtype == np.uint8


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"data_shape": (2, 4, 4)}, "data_shape"),
        (
            {"data_shape": (3, 4, 4), "max_rotate_angel": 10},
            r"(?s)unknown keyword 'max_rotate_angel'.*'max_rotate_angle'",
        ),
        ({"data_shape": (3, 4, 4), "random_resized_crop": True, "rand_crop": True}, "conflicts with rand_crop"),
        ({"data_shape": (3, 4, 4), "min_random_area": 2}, "min_random_area=2 is above max_random_area"),
        ({"data_shape": (3, 4, 4), "pad": -1}, "pad must not be negative"),
        ({"data_shape": (3, 4, 4), "inter_method": 7}, "inter_method"),
        ({"data_shape": (3, 4, 4), "path_imglist": "nowhere.lst"}, "nowhere.lst"),
        ({"data_shape": (3, 4, 4), "part_index": 2, "num_parts": 2}, "part_index"),
        ({"data_shape": (3, 4, 4), "batch_size": 0}, "batch_size"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, text, rng):
    _, file = image_file(tmp_path, rng.integers(0, 256, size=(2, 4, 4, 3)).astype(np.uint8), range(2))
    with pytest.raises(mx.MXNetError, match=text):
        mx.io.ImageRecordIter(path_imgrec=file, **arguments)


def test_a_mean_image_is_made_once_and_subtracted(tmp_path, rng):
    images = rng.integers(0, 256, size=(6, 4, 5, 3)).astype(np.uint8)
    _, file = image_file(tmp_path, images, range(6))
    path = str(tmp_path / "mean.bin")
    options = {"path_imgrec": file, "data_shape": (3, 4, 5), "batch_size": 6, "mean_img": path}
    expected = images.astype(np.float32).transpose(0, 3, 1, 2)
    made = next(mx.io.ImageRecordIter(rand_mirror=False, scale=0.5, **options)).data[0].asnumpy()
    saved = mx.nd.load(path)["mean_img"].asnumpy()
    np.testing.assert_allclose(saved, expected.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(made, (expected - saved) * 0.5, atol=1e-3)
    mx.nd.save(path, {"mean_img": mx.nd.ones((3, 4, 5))})
    again = next(mx.io.ImageRecordIter(**options)).data[0].asnumpy()
    np.testing.assert_allclose(again, expected - 1)
    mx.nd.save(path, {"mean_img": mx.nd.ones((3, 2, 2))})
    with pytest.raises(mx.errors.FormatError, match=r"(?s)shape \(3, 4, 5\), got shape \(3, 2, 2\).*remove the file"):
        mx.io.ImageRecordIter(**options)
