// Resampling of images by maps of rows and columns, shared by BilinearResize2D, AdaptiveAvgPooling2D and UpSampling.
#pragma once

#include "hybridnet/op.h"
#include "kernels/image/resample.h"

namespace hybridnet::ops {

enum class ResampleKind : int32_t { kNearest, kBilinear, kAverage };

struct ResampleParams {
  ResampleKind kind = ResampleKind::kNearest;
  bool align_corners = false;
  bool transpose = false;  // the adjoint: from `target` back to `source`
  Tuple source, target;    // (height, width)
  static void describe(ParamSchema<ResampleParams>& schema);

  ResampleParams adjoint() const {
    ResampleParams p = *this;
    p.transpose = !transpose;
    return p;
  }
  kernels::AxisMap map(int axis) const;  // 0: rows, 1: columns
};

inline Tuple image_size(const Shape& image) { return Tuple{image[2], image[3]}; }

// Requires (batch, channels, height, width) and at least one pixel. Throws ShapeError.
void require_planes(InferContext& c, int input);

// Resamples input 0 to output 0. float16 and bfloat16 are computed in float32.
Ref<Kernel> link_resample(const ResampleParams& p, const LinkContext& c);

// Emits the resampling of an image.
Value resample(const Value& image, ResampleParams p);

int64_t resample_cost_ns(const TensorSpec& in, const TensorSpec& out);

}  // namespace hybridnet::ops
