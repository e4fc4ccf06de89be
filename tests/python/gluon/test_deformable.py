"""Deformable convolutions are ordinary ones initially, offsets move the kernel's points, and all modes agree."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon.contrib.cnn import DeformableConvolution, ModulatedDeformableConvolution

KINDS = [DeformableConvolution, ModulatedDeformableConvolution]


def _data(rng):
    return mx.nd.array(rng.normal(size=(2, 4, 7, 8)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"groups": 2, "num_deformable_group": 2, "use_bias": False, "strides": 2}])
def test_with_offsets_of_zero_it_is_a_convolution(kind, settings, rng):
    layer = kind(6, kernel_size=(3, 2), padding=(1, 0), **settings)
    layer.initialize(mx.init.Normal(1))
    layer.offset_weight.initialize(mx.init.Zero(), force_reinit=True)
    data = _data(rng)
    out = layer(data)
    plain = {name: value for name, value in settings.items() if name != "num_deformable_group"}
    conv = gluon.nn.Conv2D(6, (3, 2), padding=(1, 0), **plain)
    conv.initialize()
    conv(data)
    conv.weight.set_data(layer.deformable_conv_weight.data())
    if conv.bias is not None:
        conv.bias.set_data(layer.deformable_conv_bias.data())
    np.testing.assert_allclose(out.asnumpy(), conv(data).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_offset_reads_the_neighbor(kind, rng):
    layer = kind(1, 1, in_channels=4, offset_bias_initializer=mx.init.Zero())
    layer.initialize(mx.init.One())
    layer.offset_weight.initialize(mx.init.Zero(), force_reinit=True)
    moves = [0.0, 1.0] + [0.0] * (layer.offset_bias.shape[0] - 2)  # moves the first point by one pixel to the right
    layer.offset_bias.set_data(mx.nd.array(moves))
    data = _data(rng)
    np.testing.assert_allclose(
        layer(data).asnumpy()[:, 0, :, :-1], data.asnumpy().sum(axis=1)[:, :, 1:], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_all_parameters_learn_and_modes_agree(kind, tmp_path, rng):
    layer = kind(3, 3, padding=1, activation="relu", offset_weight_initializer=mx.init.Normal(0.1), prefix="layer_")
    layer.initialize(mx.init.Normal(1))
    data = _data(rng)
    with autograd.record():
        eager = layer(data)
    eager.backward()
    grads = {name: param.grad().asnumpy().copy() for name, param in layer.collect_params().items()}
    assert set(grads) == {
        f"layer_{part}_{what}" for part in ("offset", "deformable_conv") for what in ("weight", "bias")
    }
    assert all(np.abs(grad).sum() > 0 for grad in grads.values())
    layer.hybridize()
    with autograd.record():
        hybrid = layer(data)
    hybrid.backward()
    np.testing.assert_allclose(hybrid.asnumpy(), eager.asnumpy(), rtol=1e-4, atol=1e-5)
    for name, param in layer.collect_params().items():
        np.testing.assert_allclose(param.grad().asnumpy(), grads[name], rtol=1e-3, atol=1e-3)
    loaded = gluon.SymbolBlock.imports(*_files(layer.export(str(tmp_path / "layer"))))
    np.testing.assert_allclose(loaded(data).asnumpy(), eager.asnumpy(), rtol=1e-4, atol=1e-5)


def _files(exported):
    return exported[0], ["data"], exported[1]


def test_layers_have_a_repr_and_name_wrong_arguments():
    layer = DeformableConvolution(3, 3, padding=1, dilation=2, groups=1, use_bias=False, activation="relu")
    assert repr(layer) == (
        "DeformableConvolution(None -> 3, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(2, 2), "
        "bias=False, Activation(relu))"
    )
    with pytest.raises(mx.MXNetError, match=r"DeformableConvolution\.layout.*'NHWC'"):
        DeformableConvolution(3, layout="NHWC")
    with pytest.raises(mx.MXNetError, match=r"ModulatedDeformableConvolution\.channels"):
        ModulatedDeformableConvolution(0)
