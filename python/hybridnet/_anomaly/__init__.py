"""mx.autograd.detect_anomaly: the search for the operator that made the first NaN or infinity."""

from ._detection import DetectAnomaly, set_detect_anomaly

__all__ = ["DetectAnomaly", "set_detect_anomaly"]
