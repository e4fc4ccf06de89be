"""Images: files, resizing, cropping, rotating, augmenters, iterators; datasets and transforms of gluon."""

from __future__ import annotations

import gzip
import math
import struct
import zlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import image
from hybridnet.gluon.data import DataLoader, vision
from hybridnet.gluon.data.vision import transforms
from hybridnet.io._image_files import decode_image, encode_image
from hybridnet.io._png import SIGNATURE, decode_png, encode_png


def picture(rng, height=6, width=5, channels=3):
    return rng.integers(0, 256, size=(height, width, channels)).astype(np.uint8)


# -- files ----------------------------------------------------------------------------------------------------------


def _paeth(left, up, corner):
    guess = int(left) + int(up) - int(corner)
    return min((abs(guess - int(v)), k, int(v)) for k, v in enumerate((left, up, corner)))[2]


def filtered_png(pixels, kinds):
    """Encodes pixels as a PNG whose rows use the given filters."""
    height, width, channels = pixels.shape
    flat = pixels.reshape(height, -1).astype(int)
    lines = b""
    for row, kind in enumerate(kinds):
        out = bytearray([kind])
        for i, v in enumerate(flat[row]):
            left = flat[row][i - channels] if i >= channels else 0
            up = flat[row - 1][i] if row else 0
            corner = flat[row - 1][i - channels] if row and i >= channels else 0
            out.append((v - [0, left, up, (left + up) // 2, _paeth(left, up, corner)][kind]) % 256)
        lines += bytes(out)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_with_every_filter(channels, rng):
    pixels = picture(rng, 10, 7, channels)
    np.testing.assert_array_equal(decode_png(filtered_png(pixels, [0, 1, 2, 3, 4] * 2)), pixels)
    np.testing.assert_array_equal(decode_png(encode_png(pixels)), pixels)


@pytest.mark.parametrize("cut", [8, 20, 40, -1])
def test_broken_png_files_are_errors(cut, rng):
    content = encode_png(picture(rng))
    with pytest.raises(mx.errors.FormatError):
        decode_png(content[:cut])
    huge = bytearray(content)
    huge[16:24] = struct.pack(">II", 1 << 30, 1 << 30)
    with pytest.raises(mx.errors.FormatError, match="broken header"):
        decode_png(bytes(huge))
    with pytest.raises(mx.errors.FormatError):
        decode_image(b"neither this nor that")


def test_images_are_read_in_color_gray_and_as_they_are(tmp_path, rng):
    pixels = picture(rng)
    file = str(tmp_path / "image.png")
    (tmp_path / "image.png").write_bytes(encode_image(pixels, ".png", 6))
    np.testing.assert_array_equal(image.imread(file).asnumpy(), pixels)
    np.testing.assert_array_equal(image.imread(file, to_rgb=False).asnumpy(), pixels[:, :, ::-1])
    gray = image.imread(file, flag=0).asnumpy()
    assert gray.shape == (6, 5, 1)
    np.testing.assert_allclose(gray[:, :, 0], pixels @ [0.299, 0.587, 0.114], atol=1)
    (tmp_path / "gray.png").write_bytes(encode_image(pixels[:, :, 0], ".png", 6))
    assert image.imread(str(tmp_path / "gray.png")).shape == (6, 5, 3)
    assert image.imread(str(tmp_path / "gray.png"), flag=-1).shape == (6, 5, 1)
    (tmp_path / "image.ppm").write_bytes(b"P6\n# made by hand\n5 6\n255\n" + pixels.tobytes())
    np.testing.assert_array_equal(image.imread(str(tmp_path / "image.ppm")).asnumpy(), pixels)
    out = mx.nd.zeros((6, 5, 3), dtype="uint8")
    assert image.imread(file, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), pixels)
    with pytest.raises(OSError, match=r"nowhere\.png"):
        image.imread(str(tmp_path / "nowhere.png"))
    (tmp_path / "broken.png").write_bytes(b"text")
    with pytest.raises(mx.errors.FormatError, match=r"broken\.png"):
        image.imread(str(tmp_path / "broken.png"))


def test_decoding_takes_bytes_and_arrays(rng):
    pixels = picture(rng)
    content = encode_png(pixels)
    for buffer in (
        content,
        bytearray(content),
        np.frombuffer(content, np.uint8),
        mx.nd.array(list(content), dtype="uint8"),
    ):
        np.testing.assert_array_equal(image.imdecode(buffer).asnumpy(), pixels)
    with pytest.raises(ValueError, match="convert to bytes"):
        image.imdecode("text")


# -- geometry -------------------------------------------------------------------------------------------------------


def test_resizing_by_interpolation():
    row = np.arange(4, dtype="float32").reshape(1, 4, 1) * 10
    bilinear = image.imresize(mx.nd.array(row), 8, 1).asnumpy().ravel()
    np.testing.assert_allclose(bilinear, [0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30], rtol=1e-5)
    nearest = image.imresize(mx.nd.array(row), 8, 1, interp=0).asnumpy().ravel()
    assert nearest.tolist() == [0, 0, 10, 10, 20, 20, 30, 30]
    area = image.imresize(mx.nd.array(row), 2, 1, interp=3).asnumpy().ravel()
    assert area.tolist() == [5, 25]
    for method in (2, 4):
        constant = image.imresize(mx.nd.full((5, 7, 2), 9.0), 11, 3, interp=method)
        np.testing.assert_allclose(constant.asnumpy(), 9, rtol=1e-5)
    assert image.imresize(mx.nd.zeros((4, 4, 3), dtype="uint8"), 2, 3).dtype == np.uint8
    with pytest.raises(ValueError, match="interpolation"):
        image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2, interp=7)
    with pytest.raises(ValueError, match="width 0"):
        image.imresize(mx.nd.zeros((4, 4, 3)), 0, 2)


def test_cropping(rng):
    pixels = picture(rng, 8, 10)
    src = mx.nd.array(pixels, dtype="uint8")
    np.testing.assert_array_equal(image.fixed_crop(src, 2, 1, 4, 3).asnumpy(), pixels[1:4, 2:6])
    assert image.fixed_crop(src, 2, 1, 4, 3, size=(2, 2)).shape == (2, 2, 3)
    part, where = image.center_crop(src, (4, 6))
    assert where == (3, 1, 4, 6)
    np.testing.assert_array_equal(part.asnumpy(), pixels[1:7, 3:7])
    part, (x, y, w, h) = image.random_crop(src, (4, 6))
    np.testing.assert_array_equal(part.asnumpy(), pixels[y : y + h, x : x + w])
    assert (w, h) == (4, 6)
    part, (x, y, w, h) = image.random_size_crop(src, (5, 5), (0.2, 0.6), (0.7, 1.4))
    assert part.shape == (5, 5, 3)
    assert 0.1 < w * h / 80 < 0.75
    assert image.resize_short(src, 4).shape == (4, 5, 3)
    assert image.scale_down((640, 480), (720, 120)) == (640, 106)
    with pytest.raises(ValueError, match="leaves the image"):
        image.fixed_crop(src, 8, 0, 4, 4)
    bordered = image.copyMakeBorder(src, 1, 2, 3, 4, value=7).asnumpy()
    assert bordered.shape == (11, 17, 3)
    assert (bordered[0] == 7).all()
    np.testing.assert_array_equal(bordered[1:9, 3:13], pixels)
    np.testing.assert_array_equal(image.copyMakeBorder(src, 1, 0, 0, 0, type=1).asnumpy()[0], pixels[0])


def test_rotating_by_right_angles(rng):
    src = rng.normal(size=(2, 5, 5)).astype("float32")
    rotated = image.imrotate(mx.nd.array(src), 90).asnumpy()
    assert any(np.allclose(rotated, np.rot90(src, k, axes=(1, 2)), atol=1e-4) for k in (1, -1))
    both = image.imrotate(mx.nd.array(np.stack([src, src])), mx.nd.array([0, 180]))
    np.testing.assert_allclose(both.asnumpy()[0], src, atol=1e-4)
    np.testing.assert_allclose(both.asnumpy()[1], src[:, ::-1, ::-1], atol=1e-4)
    assert image.random_rotate(mx.nd.array(src), (-30, 30)).shape == src.shape
    assert (image.imrotate(mx.nd.ones((1, 9, 9)), 30, zoom_in=True).asnumpy() > 0.99).all()
    with pytest.raises(TypeError, match="float32"):
        image.imrotate(mx.nd.zeros((2, 5, 5), dtype="uint8"), 10)
    with pytest.raises(ValueError, match="cannot be both"):
        image.imrotate(mx.nd.zeros((2, 5, 5)), 10, zoom_in=True, zoom_out=True)


# -- augmenters and ImageIter ---------------------------------------------------------------------------------------


def test_augmenters_of_the_usual_list(rng):
    augmenters = image.CreateAugmenter(
        (3, 6, 5), resize=8, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True, std=True, brightness=0.1,
        contrast=0.1, saturation=0.1, hue=0.1, pca_noise=0.1, rand_gray=0.5,
    )  # fmt: skip
    src = mx.nd.array(picture(rng, 12, 10), dtype="uint8")
    for augmenter in augmenters:
        src = augmenter(src)
    assert src.shape == (6, 5, 3)
    assert src.dtype == np.float32
    assert np.abs(src.asnumpy()).max() < 6
    assert image.ResizeAug(8).dumps() == '["resizeaug", {"size": 8, "interp": 2}]'
    assert [type(a).__name__ for a in image.CreateAugmenter((3, 6, 5))] == ["CenterCropAug", "CastAug"]
    with pytest.raises(ValueError, match="rand_crop"):
        image.CreateAugmenter((3, 6, 5), rand_resize=True)
    with pytest.raises(ValueError, match="mean"):
        image.CreateAugmenter((3, 6, 5), mean=3)


def test_color_jitter_changes_one_property_and_keeps_others(rng):
    src = mx.nd.array(picture(rng), dtype="float32")
    brighter = image.BrightnessJitterAug(0.5)(src).asnumpy() / src.asnumpy().clip(1)
    bright = brighter[src.asnumpy() > 1]
    assert bright.std() < 1e-3
    gray = src.asnumpy() @ [0.299, 0.587, 0.114]
    saturated = image.SaturationJitterAug(0.5)(src).asnumpy()
    np.testing.assert_allclose(saturated @ [0.299, 0.587, 0.114], gray, rtol=1e-3)
    contrasted = image.ContrastJitterAug(0.5)(src).asnumpy()
    np.testing.assert_allclose((contrasted @ [0.299, 0.587, 0.114]).mean(), gray.mean(), rtol=1e-3)
    flipped = image.HorizontalFlipAug(1.0)(src).asnumpy()
    np.testing.assert_array_equal(flipped, src.asnumpy()[:, ::-1])


@pytest.mark.parametrize(("handle", "counts"), [("pad", [3, 3]), ("discard", [2, 2]), ("roll_over", [2, 3])])
def test_image_lists_make_batches(tmp_path, handle, counts, rng):
    pictures = [picture(rng) for _ in range(5)]
    for i, pixels in enumerate(pictures):
        (tmp_path / f"{i}.png").write_bytes(encode_png(pixels))
    it = image.ImageIter(
        2, (3, 6, 5), path_root=str(tmp_path), imglist=[[i, f"{i}.png"] for i in range(5)], last_batch_handle=handle
    )
    for count in counts:
        batches = list(it)
        assert len(batches) == count
        it.reset()
    it.hard_reset()
    first = next(it)
    np.testing.assert_array_equal(first.data[0].asnumpy()[1], pictures[1].transpose(2, 0, 1))
    assert first.label[0].asnumpy().tolist() == [0, 1]
    if handle == "pad":
        assert [batch.pad for batch in it] == [0, 1]


def test_image_list_files_and_errors(tmp_path, rng):
    (tmp_path / "a.png").write_bytes(encode_png(picture(rng)))
    (tmp_path / "b.png").write_bytes(b"broken")
    (tmp_path / "list").write_text("7\t1.5\t2.5\ta.png\n9\t0\t0\tb.png\n")
    it = image.ImageIter(1, (3, 6, 5), label_width=2, path_imglist=str(tmp_path / "list"), path_root=str(tmp_path))
    batches = list(it)
    assert len(batches) == 1
    assert batches[0].label[0].asnumpy().tolist() == [[1.5, 2.5]]
    for arguments, text in [
        ({"batch_size": 1, "data_shape": (3, 6, 5)}, "path_imgrec"),
        ({"batch_size": 1, "data_shape": (1, 6, 5), "imglist": [[0, "a"]]}, "3 channels"),
        ({"batch_size": 1, "data_shape": (3, 6), "imglist": [[0, "a"]]}, "length 3"),
    ]:
        with pytest.raises(ValueError, match=text):
            image.ImageIter(**arguments)


# -- gluon ----------------------------------------------------------------------------------------------------------


def run(transform, pixels, dtype="uint8"):
    return transform(mx.nd.array(pixels, dtype=dtype)).asnumpy()


def test_transforms_to_tensors(rng):
    pixels = picture(rng)
    tensor = run(transforms.ToTensor(), pixels)
    np.testing.assert_allclose(tensor, pixels.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert run(transforms.ToTensor(), pixels[None]).shape == (1, 3, 6, 5)
    normalized = run(transforms.Normalize((0.1, 0.2, 0.3), (1, 2, 4)), tensor, "float32")
    expected = (tensor - np.reshape([0.1, 0.2, 0.3], (3, 1, 1))) / np.reshape([1, 2, 4], (3, 1, 1))
    np.testing.assert_allclose(normalized, expected, rtol=1e-5, atol=1e-6)
    assert run(transforms.Cast("float16"), pixels).dtype == np.float16
    chain = transforms.Compose([transforms.Resize((4, 3)), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    assert run(chain, pixels).shape == (3, 3, 4)
    hybrid = transforms.HybridCompose([transforms.ToTensor(), transforms.Cast("float64")])
    np.testing.assert_allclose(run(hybrid, pixels), pixels.transpose(2, 0, 1) / 255, rtol=1e-6)
    with pytest.raises(ValueError, match="HybridBlock"):
        transforms.HybridCompose([transforms.Resize(3)])


def test_geometric_transforms(rng):
    pixels = picture(rng, 8, 10)
    np.testing.assert_array_equal(run(transforms.CenterCrop((4, 6)), pixels), pixels[1:7, 3:7])
    np.testing.assert_array_equal(run(transforms.CropResize(2, 1, 4, 3), pixels), pixels[1:4, 2:6])
    assert run(transforms.CropResize(2, 1, 4, 3, (8, 8)), pixels).shape == (8, 8, 3)
    assert run(transforms.Resize(4, keep_ratio=True), pixels).shape == (4, 5, 3)
    assert run(transforms.RandomResizedCrop(6), pixels).shape == (6, 6, 3)
    assert run(transforms.RandomCrop((5, 4)), pixels).shape == (4, 5, 3)
    assert run(transforms.RandomCrop(8, pad=2), pixels).shape == (8, 8, 3)
    flips = {run(transforms.RandomFlipLeftRight(), pixels).tobytes() for _ in range(40)}
    assert flips == {pixels.tobytes(), pixels[:, ::-1].tobytes()}
    flips = {run(transforms.RandomFlipTopBottom(), pixels).tobytes() for _ in range(40)}
    assert flips == {pixels.tobytes(), pixels[::-1].tobytes()}
    tensor = rng.normal(size=(3, 5, 5)).astype("float32")
    np.testing.assert_allclose(run(transforms.Rotate(180), tensor, "float32"), tensor[:, ::-1, ::-1], atol=1e-4)
    assert run(transforms.RandomRotation((-20, 20)), tensor, "float32").shape == (3, 5, 5)


@pytest.mark.parametrize(
    "transform",
    [
        transforms.RandomBrightness(0.3),
        transforms.RandomContrast(0.3),
        transforms.RandomSaturation(0.3),
        transforms.RandomHue(0.3),
        transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1),
        transforms.RandomLighting(0.5),
    ],
)
def test_color_transforms_keep_shape_and_type(transform, rng):
    pixels = picture(rng)
    results = [run(transform, pixels) for _ in range(3)]
    assert all(out.shape == pixels.shape for out in results)
    assert any((out != results[0]).any() for out in results[1:])


def test_random_apply_applies_sometimes(rng):
    pixels = picture(rng)
    apply = transforms.RandomApply([transforms.Cast("float64")], p=0.5)
    assert {run(apply, pixels).dtype.name for _ in range(40)} == {"uint8", "float64"}


def test_mnist_is_read_from_local_files(tmp_path, rng):
    images = rng.integers(0, 256, size=(6, 28, 28)).astype(np.uint8)
    labels = np.arange(6, dtype=np.uint8)
    image_bytes = struct.pack(">IIII", 2051, 6, 28, 28) + images.tobytes()
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(image_bytes))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 6) + labels.tobytes())
    for kind in (vision.MNIST, vision.FashionMNIST):
        dataset = kind(root=str(tmp_path), train=False)
        assert len(dataset) == 6
        first, label = dataset[3]
        assert first.shape == (28, 28, 1)
        np.testing.assert_array_equal(first.asnumpy()[:, :, 0], images[3])
        assert label == 3
    loader = DataLoader(dataset.transform_first(transforms.ToTensor()), 4, num_workers=2)
    batches = list(loader)
    assert batches[0][0].shape == (4, 1, 28, 28)
    np.testing.assert_allclose(batches[1][0].asnumpy()[0, 0], images[4] / 255, rtol=1e-6)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(image_bytes[:-1]))
    with pytest.raises(mx.errors.FormatError, match="t10k-images"):
        vision.MNIST(root=str(tmp_path), train=False)


def test_cifar_is_read_from_local_files(tmp_path, rng):
    images = rng.integers(0, 256, size=(4, 3, 32, 32)).astype(np.uint8)
    records = b"".join(bytes([i]) + pixels.tobytes() for i, pixels in enumerate(images))
    (tmp_path / "test_batch.bin").write_bytes(records)
    dataset = vision.CIFAR10(root=str(tmp_path), train=False)
    assert len(dataset) == 4
    np.testing.assert_array_equal(dataset[2][0].asnumpy(), images[2].transpose(1, 2, 0))
    assert dataset[2][1] == 2
    records = b"".join(bytes([i, 10 + i]) + pixels.tobytes() for i, pixels in enumerate(images))
    (tmp_path / "test.bin").write_bytes(records)
    assert [int(label) for _, label in vision.CIFAR100(root=str(tmp_path), train=False)] == [0, 1, 2, 3]
    fine = vision.CIFAR100(root=str(tmp_path), fine_label=True, train=False)
    assert [int(label) for _, label in fine] == [10, 11, 12, 13]


def test_image_folders_are_classes(tmp_path, rng):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(2):
            (tmp_path / name / f"{i}.png").write_bytes(encode_png(picture(rng)))
    dataset = vision.ImageFolderDataset(str(tmp_path))
    assert dataset.synsets == ["cat", "dog"]
    assert [label for _, label in dataset] == [0, 0, 1, 1]
    assert dataset[0][0].shape == (6, 5, 3)
    assert vision.ImageFolderDataset(str(tmp_path), flag=0)[0][0].shape == (6, 5, 1)
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    with pytest.warns(UserWarning, match=r"notes\.txt"):
        vision.ImageFolderDataset(str(tmp_path))
    with pytest.raises(OSError, match="does not exist"):
        vision.ImageFolderDataset(str(tmp_path / "nowhere"))


def test_areas_of_random_crops_follow_their_bounds(rng):
    pixels = mx.nd.zeros((100, 100, 1))
    shares = [math.prod(image.random_size_crop(pixels, (4, 4), (0.1, 0.5), (0.5, 2))[1][2:]) / 1e4 for _ in range(50)]
    assert min(shares) > 0.08
    assert max(shares) < 0.52


def test_borders_into_an_array():
    source = mx.nd.array(np.arange(12).reshape(2, 2, 3), dtype="uint8")
    out = mx.nd.zeros((4, 3, 3), dtype="uint8")
    assert image.copyMakeBorder(source, 1, 1, 0, 1, type=1, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), image.copyMakeBorder(source, 1, 1, 0, 1, type=1).asnumpy())
    with pytest.raises(ValueError, match="at least 0"):
        image.copyMakeBorder(source, -1, 0, 0, 0)


def test_nothing_is_no_image():
    with pytest.raises(mx.base.HybridNetError, match="empty"):
        image.imdecode(b"")


@pytest.mark.parametrize("size", [(1, 2, 3), (0, 2), -3])
def test_resize_refuses_sizes(size):
    with pytest.raises(ValueError):
        transforms.Resize(size, keep_ratio=True)(mx.nd.zeros((4, 5, 3), dtype="uint8"))


@pytest.mark.parametrize(("old", "new"), [(10, 7), (49, 49 * 3), (6, 15)])
def test_nearest_takes_the_pixel_at_the_rounded_down_place(old, new):
    source = mx.nd.array(np.arange(old).reshape(old, 1, 1), dtype="uint8")
    resized = image.imresize(source, 1, new, interp=0).asnumpy().ravel()
    np.testing.assert_array_equal(resized, np.arange(new) * old // new)


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_jitter_takes_its_strength_by_name(name):
    augmenter = getattr(mx.image, f"{name.title()}JitterAug")(**{name: 0.25})
    assert augmenter.dumps() == f'["{name}jitteraug", {{"{name}": 0.25}}]'
