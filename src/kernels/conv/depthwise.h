// Convolution of each channel by 3x3 weights of its own. Channels-last float32 images.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/conv/conv_geometry.h"

namespace hybridnet::kernels {

bool is_depthwise(const ConvGeometry& g);  // a 3x3 convolution of each channel by itself, with any stride and padding
// True if also faster than oneDNN's here: with AVX2. Other instruction sets were not measured.
bool depthwise_pays(const ConvGeometry& g);

int64_t depthwise_weight_bytes(const ConvGeometry& g);
// Packs w (c, 1, 3, 3), or (c, 3, 3, 1), into the order that the instruction set in force reads.
void depthwise_pack(const ConvGeometry& g, const float* w, float* packed);

struct DepthwiseEnd {
  const float* bias = nullptr;    // (c,), or null
  const float* addend = nullptr;  // same layout as y, or null
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};
// y = min(high, max(low, conv(x, w) + bias + addend)); NaN stays NaN. The bits do not depend on the number of cores.
void depthwise_forward(const ConvGeometry& g, const float* x, const float* packed, const DepthwiseEnd& end, float* y);

}  // namespace hybridnet::kernels
