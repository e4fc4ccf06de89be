"""GluonTS 0.14: every estimator of ``gluonts.mx.model``, trained on a synthetic data set."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import mxnet as mx
import numpy as np
import pandas as pd
from gluonts.dataset.common import ListDataset
from gluonts.mx.trainer import Trainer

from .subject import arrays_in, check_gradients

PERIODS, AHEAD, BATCH = 120, 4, 4
START = pd.Period("2020-01-01", freq="D")


def _series(number: int) -> Any:
    noise = np.random.RandomState(number).uniform(0, 1, PERIODS)
    return (10 + 3 * np.sin(np.arange(PERIODS) / 7 * 2 * np.pi) + noise).astype("float32")


def _series_set() -> Any:
    entries = [
        {
            "start": START,
            "target": _series(number),
            "feat_static_cat": [number % 2],
            "feat_static_real": [0.5],
            "feat_dynamic_real": [np.linspace(0, 1, PERIODS + AHEAD)],
        }
        for number in range(4)
    ]
    for entry in entries:
        entry["feat_dynamic_real"] = [entry["feat_dynamic_real"][0][:PERIODS]]
    return ListDataset(entries, freq="D")


def _several_targets() -> Any:
    target = np.stack([_series(0), _series(1), _series(0) + _series(1)])
    return ListDataset([{"start": START, "target": target}] * 2, freq="D", one_dim_target=False)


def _intermittent() -> Any:
    entries = [{"start": START, "target": _series(number) * (np.arange(PERIODS) % 3 == 0)} for number in range(4)]
    return ListDataset(entries, freq="D")


def _events() -> Any:
    """Points in time with marks, for point processes."""
    from gluonts.dataset.artificial import ComplexSeasonalTimeSeries  # noqa: F401  # creates the data set's registry
    from gluonts.dataset.common import FileDataset  # noqa: F401

    gaps = np.random.RandomState(0).uniform(0.1, 1.0, 60)
    target = np.stack([gaps, np.arange(60) % 2]).astype("float32")
    entry = {"target": target, "start": pd.Timestamp("2020-01-01"), "end": pd.Timestamp("2020-01-03")}
    return [dict(entry, freq="H") for _ in range(2)]


class Forecaster:
    """An estimator, its trained network and predictor."""

    def __init__(self, estimator: Callable[[Any], Any], data: Any) -> None:
        self.estimator = estimator
        self.data = data
        estimator(self._trainer(hybridize=False))  # checks the estimator's arguments
        self.net: Any = None

    @staticmethod
    def _trainer(hybridize: bool) -> Any:
        return Trainer(ctx=mx.cpu(), epochs=1, num_batches_per_epoch=1, hybridize=hybridize)

    def _prepare(self) -> None:
        """Trains for one batch, makes a forecast, and keeps network and batch."""
        estimator = self.estimator(self._trainer(hybridize=False))
        trained = estimator.train_model(self.data)
        self._forecast(trained.predictor)
        self.net = trained.trained_net
        prepared = estimator.create_transformation().apply(self.data)
        mx.random.seed(0)
        np.random.seed(0)
        self.batch = next(iter(estimator.create_training_data_loader(prepared)))

    def _forecast(self, predictor: Any) -> None:
        forecast = next(iter(predictor.predict(self.data)))
        samples = getattr(forecast, "samples", None)
        values = forecast.forecast_array if samples is None else samples
        assert np.isfinite(np.asarray(values, dtype="float64")).all(), "a forecast that is not finite"

    def forward(self) -> list[np.ndarray]:
        if self.net is None:
            self._prepare()
        mx.random.seed(0)
        return [array.asnumpy() for array in arrays_in(self.net(*self.batch.values()))]

    def hybridize(self) -> None:
        self.net.hybridize()

    def train(self) -> None:
        """Trains and makes a forecast with hybridized networks."""
        trained = self.estimator(self._trainer(hybridize=True)).train_model(self.data)
        check_gradients(trained.trained_net.collect_params())
        self._forecast(trained.predictor)


def _make(module: str, name: str, data: Callable[[], Any], **keywords: Any) -> Forecaster:
    estimator = getattr(import_module(f"gluonts.mx.model.{module}"), name)
    return Forecaster(lambda trainer: estimator(trainer=trainer, **keywords), data())


def _seq2seq(name: str, **keywords: Any) -> Forecaster:
    sizes = {"freq": "D", "prediction_length": AHEAD, "context_length": 8, "cardinality": [2]}
    layers = {"embedding_dimension": 2, "decoder_mlp_layer": [4], "decoder_mlp_static_dim": 2}
    return _make("seq2seq._seq2seq_estimator", name, _series_set, **sizes, **layers, **keywords)


def _deep_ar(**keywords: Any) -> Forecaster:
    return _make("deepar", "DeepAREstimator", _series_set, **DAILY, **SMALL, **keywords)


def _with_output(output: str, **keywords: Any) -> Callable[[], Forecaster]:
    return lambda: _deep_ar(distr_output=getattr(import_module("gluonts.mx.distribution"), output)(**keywords))


DAILY: dict[str, Any] = {"freq": "D", "prediction_length": AHEAD, "batch_size": BATCH}
SMALL: dict[str, Any] = {"num_layers": 1, "num_cells": 4, "num_parallel_samples": 5}
WIDE: dict[str, Any] = {**DAILY, **SMALL, "target_dim": 3}
SUMS = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])

MODELS: dict[str, Callable[[], Forecaster]] = {
    "DeepAR": _deep_ar,
    "DeepAR-gru": lambda: _deep_ar(cell_type="gru", use_feat_static_cat=True, cardinality=[2]),
    "DeepAR-features": lambda: _deep_ar(use_feat_static_real=True, dropoutcell_type="VariationalDropoutCell"),
    **{
        f"DeepAR-{output}": _with_output(f"{output}Output")
        for output in ("Gaussian", "Laplace", "NegativeBinomial", "Poisson", "Gamma", "GenPareto")
    },
    "DeepAR-PiecewiseLinear": _with_output("PiecewiseLinearOutput", num_pieces=3),
    "SimpleFeedForward": lambda: _make(
        "simple_feedforward",
        "SimpleFeedForwardEstimator",
        _series_set,
        prediction_length=AHEAD,
        context_length=8,
        num_hidden_dimensions=[8],
        batch_size=BATCH,
        num_parallel_samples=5,
    ),
    "DeepState": lambda: _make(
        "deepstate",
        "DeepStateEstimator",
        _series_set,
        **DAILY,
        **SMALL,
        cardinality=[2],
        use_feat_static_cat=True,
        past_length=14,
    ),
    "Transformer": lambda: _make(
        "transformer",
        "TransformerEstimator",
        _series_set,
        **DAILY,
        context_length=8,
        model_dim=4,
        num_heads=2,
        inner_ff_dim_scale=2,
        num_parallel_samples=5,
    ),
    "WaveNet": lambda: _make(
        "wavenet",
        "WaveNetEstimator",
        _series_set,
        **DAILY,
        num_bins=16,
        n_residue=4,
        n_skip=4,
        dilation_depth=2,
        num_parallel_samples=5,
    ),
    "MQCNN": lambda: _make("seq2seq", "MQCNNEstimator", _series_set, **DAILY, context_length=8, scaling=True),
    "MQCNN-iqf": lambda: _make("seq2seq", "MQCNNEstimator", _series_set, **DAILY, context_length=8, is_iqf=True),
    "MQRNN": lambda: _make("seq2seq", "MQRNNEstimator", _series_set, **DAILY, context_length=8),
    "MLP2QR": lambda: _seq2seq("MLP2QRForecaster", encoder_mlp_layer=[4]),
    "RNN2QR": lambda: _seq2seq("RNN2QRForecaster", encoder_rnn_layer=1, encoder_rnn_num_hidden=4),
    "CNN2QR": lambda: _seq2seq("CNN2QRForecaster"),
    "NBEATS": lambda: _make(
        "n_beats", "NBEATSEstimator", _series_set, **DAILY, context_length=8, num_stacks=2, num_blocks=[1], widths=[8]
    ),
    "GaussianProcess": lambda: _make(
        "gp_forecaster",
        "GaussianProcessEstimator",
        _series_set,
        **DAILY,
        cardinality=2,
        context_length=8,
        num_parallel_samples=5,
    ),
    "GPVAR": lambda: _make("gpvar", "GPVAREstimator", _several_targets, **WIDE, rank=2),
    "DeepVAR": lambda: _make("deepvar", "DeepVAREstimator", _several_targets, **WIDE, rank=2),
    "DeepVARHierarchical": lambda: _make(
        "deepvar_hierarchical", "DeepVARHierarchicalEstimator", _several_targets, **DAILY, **SMALL, S=SUMS
    ),
    "TemporalFusionTransformer": lambda: _make(
        "tft",
        "TemporalFusionTransformerEstimator",
        _series_set,
        **DAILY,
        context_length=8,
        hidden_dim=4,
        variable_dim=4,
        num_heads=2,
    ),
    "LSTNet": lambda: _make(
        "lstnet",
        "LSTNetEstimator",
        _several_targets,
        prediction_length=AHEAD,
        context_length=24,
        num_series=3,
        skip_size=4,
        ar_window=4,
        channels=8,
        kernel_size=3,
        batch_size=BATCH,
    ),
    "DeepFactor": lambda: _make(
        "deep_factor",
        "DeepFactorEstimator",
        _series_set,
        **DAILY,
        context_length=8,
        cardinality=[2],
        num_hidden_global=4,
        num_factors=2,
        num_parallel_samples=5,
    ),
    "CanonicalRNN": lambda: _make(
        "canonical",
        "CanonicalRNNEstimator",
        _series_set,
        freq="D",
        prediction_length=AHEAD,
        context_length=8,
        cardinality=[2],
        **SMALL,
    ),
    "MLPForecaster": lambda: _make(
        "canonical._estimator",
        "MLPForecasterEstimator",
        _series_set,
        freq="D",
        prediction_length=AHEAD,
        context_length=8,
        cardinality=[2],
        hidden_dim_sequence=[4],
    ),
    "DeepRenewalProcess": lambda: _make(
        "renewal",
        "DeepRenewalProcessEstimator",
        _intermittent,
        prediction_length=AHEAD,
        context_length=8,
        num_cells=4,
        num_layers=1,
        batch_size=BATCH,
        num_parallel_samples=5,
    ),
    "DeepTPP": lambda: _make(
        "tpp.deeptpp",
        "DeepTPPEstimator",
        _events,
        prediction_interval_length=4.0,
        context_interval_length=6.0,
        num_marks=2,
        num_parallel_samples=5,
        num_training_instances=4,
        freq="H",
        batch_size=BATCH,
    ),
}
