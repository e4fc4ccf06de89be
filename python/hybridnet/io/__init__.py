"""Data iterators: batches for Module.fit and training loops."""

from .._lazy_names import names_from
from .._public_names import dir_of
from . import io
from ._array_iter import *
from ._batches import *
from ._detection_record_iter import *
from ._file_iters import *
from ._record_iter import *
from ._wrapping_iters import *

_NATIVE = "iterators are written in Python here"
__getattr__, __dir__ = names_from(
    __name__,
    missing={
        "CaffeDataIter": (
            "HybridNet does not link Caffe",
            "convert the data with im2rec and read it by ImageRecordIter",
        ),
        "ImageRecordIter_v1": ("it is an old form of ImageRecordIter", "use ImageRecordIter"),
        "ImageRecordUInt8Iter_v1": ("it is an old form of ImageRecordUInt8Iter", "use ImageRecordUInt8Iter"),
        "ImageRecordInt8Iter": ("networks of bytes are not supported", "use ImageRecordIter"),
        "MXDataIter": (_NATIVE, "derive from mx.io.DataIter"),
    },
)
__dir__ = dir_of(__name__, __dir__)
