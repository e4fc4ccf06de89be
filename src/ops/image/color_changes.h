// Color changes of one image (height, width, 1 or 3 channels), in double precision.
#pragma once

#include <cstdint>
#include <memory>

#include "hybridnet/op.h"
#include "hybridnet/storage.h"
#include "kernels/device/image_arguments.h"
#include "storage/temporary.h"

namespace hybridnet::ops {

// An image as doubles while colors change. store() converts it back to the dtype of the tensor: integers are truncated,
// bytes are clamped to [0, 255].
class ColorImage {
 public:
  explicit ColorImage(const TensorRef& image);
  void store(const TensorRef& out) const;

  void scale(double factor);             // brightness
  void contrast(double factor);          // scales the distance from the mean luminance
  void saturation(double factor);        // scales the distance from every pixel's luminance
  void rotate_hue(double turns);         // by turns of the color circle
  void light(const double (&alpha)[3]);  // along the principal components of ImageNet's colors

 private:
  double luminance(int64_t pixel) const;
  void change(const char* kind, device::ColorArguments a) const;
  void round();  // has the effect of storing and loading between two changes
  int64_t pixels_, channels_;
  DType dtype_;
  Temporary<double> values_;
  std::unique_ptr<OwnedBlock> on_device_;  // the values, and room for their mean, in memory of a device
};

// Shape (height, width, 1 or 3) of input and output.
void infer_color(InferContext& c);

}  // namespace hybridnet::ops
