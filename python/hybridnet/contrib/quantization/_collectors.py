"""Collectors of calibration statistics: observed values of a network, and the resulting ranges."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import numpy as np

from ... import ndarray
from ...errors import ValueError as HybridNetValueError
from ...errors import not_overridden
from ...ndarray import NDArray

__all__ = ["CalibrationCollector", "combine_histogram"]

Range = tuple[float, float]
Histogram = tuple[Any, Any, float, float, float]  # counts, edges, minimum, maximum, end of the last bin

NUM_BINS = 8001  # odd, so that zero is the middle of a bin


class CalibrationCollector:
    """Base of collectors: ``collect`` observes values, ``min_max_dict`` holds the resulting ranges.

    Derive from it for custom ranges, and pass an object to ``quantize_net_v2(calib_mode="customize")``; an object of
    any class with these two members is accepted. ``collect`` has the signature of an executor's monitor, so that a
    collector of ``quantize_graph`` can also be passed to ``set_monitor_callback``.

    Parameters
    ----------
    include_layer : collection of str, optional
        Names of the values to observe; None: all.
    logger : optional
    """

    def __init__(self, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        self.include_layer = include_layer
        self.logger = logger
        self.min_max_dict: dict[str, Range] = {}

    def collect(self, name: str, arr: NDArray) -> None:
        """Observes arr, the value called name (``conv0_output``), for one batch."""
        raise not_overridden(self, "collect(name, arr)")

    def wants(self, name: str) -> bool:
        """Whether a value of this name is observed."""
        return self.include_layer is None or name in self.include_layer

    def ranges(self, quantized_dtype: str) -> dict[str, Range]:
        """Returns (minimum, maximum) by name: the range that bytes represent."""
        return self.min_max_dict


class LayerOutputMinMaxCollector(CalibrationCollector):
    """Records the minimum and the maximum of values: calib_mode 'naive'."""

    def collect(self, name: str, arr: NDArray) -> None:
        if not self.wants(name):
            return
        low, high = _ends(arr)
        if name in self.min_max_dict:
            before = self.min_max_dict[name]
            low, high = min(low, before[0]), max(high, before[1])
        self.min_max_dict[name] = (low, high)
        if self.logger:
            self.logger.debug("values of %s from %g to %g", name, low, high)


class LayerHistogramCollector(CalibrationCollector):
    """Records histograms of values, and finds the ranges that lose the least information: calib_mode 'entropy'.

    Attributes: ``hist_dict``, by name: counts, bin edges, minimum, maximum, end of the last bin.
    """

    def __init__(
        self, num_bins: int = NUM_BINS, include_layer: Collection[str] | None = None, logger: Any = None
    ) -> None:
        super().__init__(include_layer, logger)
        self.num_bins = num_bins
        self.hist_dict: dict[str, Histogram] = {}

    def collect(self, name: str, arr: NDArray) -> None:
        if not self.wants(name):
            return
        low, high = _ends(arr)
        reach = max(abs(low), abs(high))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], arr, low, high, reach)
        else:
            self.hist_dict[name] = (*_histogram(arr, self.num_bins, reach or 1.0), low, high, reach or 1.0)
        if self.logger:
            self.logger.debug("counted %d values of %s", arr.size, name)

    def ranges(self, quantized_dtype: str) -> dict[str, Range]:
        return {name: entropy_range(histogram, quantized_dtype) for name, histogram in self.hist_dict.items()}


def _ends(arr: NDArray) -> Range:
    low, high = (float(end.reshape((1,)).asscalar()) for end in (arr.min(), arr.max()))
    if not np.isfinite(low) or not np.isfinite(high):
        raise HybridNetValueError(
            "calibration",
            expected="finite values",
            given=f"values from {low} to {high}",
            fix="look for the layer that makes them: mx.monitor.Monitor shows values of each",
        )
    return low, high


def _histogram(arr: Any, num_bins: int, reach: float) -> tuple[Any, Any]:
    """Counts the values in num_bins bins of equal width from -reach to reach; also returns the bin edges."""
    values = arr if isinstance(arr, NDArray) else ndarray.array(arr)
    counts, edges = ndarray.histogram(values.reshape(-1), bins=num_bins, range=(-reach, reach))
    return counts.asnumpy(), edges.asnumpy()


def combine_histogram(old_hist: Histogram, arr: Any, new_min: float, new_max: float, new_th: float) -> Histogram:
    """Returns the histogram with the values of arr added; adds bins of the same width for values outside.

    Parameters
    ----------
    old_hist : counts, bin edges, minimum, maximum, end of the last bin
    arr : NDArray or numpy.ndarray
    new_min, new_max, new_th : float
        Minimum and maximum of arr, and the largest absolute value.
    """
    counts, edges, low, high, reach = old_hist
    low, high = min(low, new_min), max(high, new_max)
    if new_th <= reach:
        return counts + _histogram(arr, len(counts), reach)[0], edges, low, high, reach
    width = 2 * reach / len(counts)
    added = int((new_th - reach) // width) + 1  # on each side
    reach += added * width
    more, edges = _histogram(arr, len(counts) + 2 * added, reach)
    more[added:-added] += counts
    return more, edges, low, high, reach


def entropy_range(histogram: Histogram, quantized_dtype: str, num_quantized_bins: int = 255) -> Range:
    """Returns the range with the smallest Kullback-Leibler divergence between the histograms of values and bytes.

    Source: Migacz, "8-bit inference with TensorRT", GTC 2017.
    """
    counts, edges, low, _, _ = histogram
    without_sign = low >= 0 and quantized_dtype != "int8"
    threshold, _ = ndarray.contrib.calibrate_entropy(
        ndarray.array(counts, dtype="float32"),
        ndarray.array(edges, dtype="float32"),
        num_quantized_bins=2 * num_quantized_bins + 1 if without_sign else num_quantized_bins,
    )
    reach = float(threshold.asscalar())
    return (0.0 if without_sign else -reach, reach)


def make_collector(calib_mode: str, entries: Collection[str], logger: Any) -> CalibrationCollector:
    """Returns the collector for calib_mode 'naive' or 'entropy'."""
    if calib_mode == "naive":
        return LayerOutputMinMaxCollector(entries, logger)
    return LayerHistogramCollector(include_layer=entries, logger=logger)


def note(logger: Any, text: str, *values: Any) -> None:
    """Logs to logger, if there is one; the logging module is accepted as well."""
    if logger is not None and (logger is not logging or logging.getLogger().isEnabledFor(logging.INFO)):
        logger.info(text, *values)
