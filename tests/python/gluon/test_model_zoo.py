"""Networks of model_zoo.vision: parameter names and outputs of MXNet, errors for missing files and names."""

from __future__ import annotations

import json
import pathlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import model_zoo
from hybridnet.gluon.model_zoo import vision

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"

# The thin networks of the fixtures, which MXNet 1.9.1 made and ran.
THIN = {
    "resnet18_v1_thin": lambda: vision.ResNetV1(
        vision.BasicBlockV1, [2, 2, 2, 2], [4, 4, 6, 8, 10], classes=7, thumbnail=True, prefix="r18_"
    ),
    "resnet_v2_bottleneck_thin": lambda: vision.ResNetV2(
        vision.BottleneckV2, [1, 2, 1], [4, 8, 12, 16], classes=6, thumbnail=True, prefix="r2_"
    ),
    "mobilenet_v2_thin": lambda: vision.MobileNetV2(0.1, classes=5, prefix="mb_"),
}

# Model, number of parameter arrays, number of their elements, for 10 classes.
SIZES = [
    ("resnet18_v1", 102, 11191242),
    ("resnet50_v1", 299, 23600522),
    ("resnet18_v2", 98, 11187926),
    ("densenet121", 606, 7047754),
    ("squeezenet1.0", 52, 740554),
    ("squeezenet1.1", 52, 727626),
    ("mobilenet0.25", 137, 221114),
    ("mobilenetv2_0.25", 266, 259656),
]


@pytest.mark.parametrize("case", sorted(THIN))
@pytest.mark.parametrize("hybridize", [False, True])
def test_parameters_saved_by_mxnet_load_and_give_its_numbers(case, hybridize):
    folder = FIXTURES / case
    description = json.loads((folder / "case.json").read_text())
    inputs = np.load(folder / "inputs.npz")
    data = mx.nd.array(inputs["run0/data"])
    net = THIN[case]()
    if hybridize:
        net.hybridize()
    net.initialize()
    net(data)
    saved = mx.nd.load(str(folder / f"{case}-0000.params"))
    expected = {name.partition(":")[2]: array.shape for name, array in saved.items()}
    assert {name: param.shape for name, param in net.collect_params().items()} == expected
    net.collect_params().load(str(folder / f"{case}-0000.params"))
    wanted = np.load(folder / "outputs.npz")["run0/0"]
    np.testing.assert_allclose(
        net(data).asnumpy(), wanted, rtol=description["rtol"], atol=description["atol"] * np.abs(wanted).max()
    )


@pytest.mark.parametrize(("name", "arrays", "values"), SIZES)
def test_networks_have_mxnets_parameters(name, arrays, values):
    net = vision.get_model(name, classes=10)
    net.initialize()
    net.hybridize()
    assert net(mx.nd.ones((1, 3, 224, 224))).shape == (1, 10)
    shapes = [param.shape for param in net.collect_params().values()]
    assert (len(shapes), sum(int(np.prod(shape)) for shape in shapes)) == (arrays, values)


def test_every_name_makes_a_network():
    for name in vision._models:
        net = vision.get_model(name, classes=3, prefix="net_")
        names = list(net.collect_params())
        assert names
        assert all(param.startswith("net_") for param in names)
        assert len(set(names)) == len(names)


def test_the_bottleneck_has_the_biases_of_published_files():
    names = set(vision.resnet50_v1(prefix="r_").collect_params())
    assert {"r_conv0_weight", "r_stage1_conv0_bias", "r_stage1_conv1_weight", "r_stage4_batchnorm9_gamma"} <= names
    assert "r_stage1_conv1_bias" not in names


def test_unknown_models_are_listed():
    with pytest.raises(ValueError, match=r"(?s)resnet20_v1 is not supported.*resnet18_v1") as caught:
        vision.get_model("ResNet20_v1")
    assert isinstance(caught.value, mx.MXNetError)
    with pytest.raises(ValueError, match="18, 34, 50, 101, 152"):
        vision.get_resnet(1, 20)
    with pytest.raises(ValueError, match="1 and 2"):
        vision.get_resnet(3, 18)
    with pytest.raises(ValueError, match="channels must have one entry more"):
        vision.ResNetV1(vision.BasicBlockV1, [1, 1], [4, 4])


def test_pretrained_without_a_file_says_where_to_put_one(tmp_path):
    with pytest.raises(OSError, match=r"resnet18_v1-a0666292") as caught:
        vision.resnet18_v1(pretrained=True, root=str(tmp_path))
    assert str(tmp_path) in str(caught.value)
    assert "load_parameters" in str(caught.value)


def test_pretrained_reads_a_published_file(tmp_path, monkeypatch):
    trained = vision.mobilenet0_25(classes=4)
    trained.initialize(mx.init.Xavier())
    data = mx.nd.ones((1, 3, 64, 64))
    expected = trained(data).asnumpy()
    file = tmp_path / "mobilenet0.25.params"
    trained.save_parameters(str(file))
    import hashlib

    digest = hashlib.sha1(file.read_bytes()).hexdigest()
    monkeypatch.setitem(model_zoo.model_store._model_sha1, "mobilenet0.25", digest)
    file = file.rename(tmp_path / f"mobilenet0.25-{digest[:8]}.params")
    net = vision.get_model("mobilenet0.25", pretrained=True, classes=4, root=str(tmp_path))
    np.testing.assert_array_equal(net(data).asnumpy(), expected)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="SHA-1 differs"):
        vision.get_model("mobilenet0.25", pretrained=True, classes=4, root=str(tmp_path))
    model_zoo.model_store.purge(str(tmp_path))
    assert not list(tmp_path.iterdir())
