// The parameters of the kernels of roi.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Regions (regions, 5) of data (batch, channels, height, width); windows are (pooled_height, pooled_width).
struct RoiArguments {
  const void *data, *rois;  // data: of the gradient of ROIAlign, the gradient of its output
  void* out;
  int64_t* places;
  int64_t regions, batch, channels, height, width;  // channels: of data
  int64_t pooled_height, pooled_width, out_channels;
  double scale;
  int32_t sample_ratio, position_sensitive, aligned;
};

struct PlaceArguments {
  const void* values;
  const int64_t* places;
  void* out;
  int64_t n, size;
};

}  // namespace hybridnet::device
