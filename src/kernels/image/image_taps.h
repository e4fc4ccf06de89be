// The elements along an image's axis that are combined to a new one, and their weights.
#pragma once

#include <cstdint>

#include "kernels/image/host_images.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {

// The weight of an element at this distance; 0 from image_filter_reach(method) on. Linear, cubic or Lanczos.
double image_filter(Interpolation method, double distance);
int64_t image_filter_reach(Interpolation method);

// New element k is the weighted sum of `count` old ones: entries k * count to (k + 1) * count. Its weights add up to 1.
struct ImageTaps {
  int64_t count = 0;
  Temporary<int64_t> index;
  Temporary<double> weight;
};
ImageTaps image_taps(int64_t from, int64_t to, Interpolation method);

}  // namespace hybridnet::kernels
