"""Images: files, cropping, resizing, augmentation, iterators. Images are NDArrays (height, width, channels)."""

from . import detection
from . import detection as det
from ._augment import *
from ._image_iter import *
from .detection import *
from .image import *
