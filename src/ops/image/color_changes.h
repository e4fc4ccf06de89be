// Changes of the colors of one image (height, width, 1 or 3 channels), from float to float.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet::ops {

// An image as floats while colors change; store() brings it back to the dtype of the tensor: integers lose their fraction, bytes
// are kept in [0, 255].
class ColorImage {
 public:
  explicit ColorImage(const TensorRef& image);
  void store(const TensorRef& out) const;

  void scale(float factor);                 // brightness
  void contrast(float factor);              // away from (or towards) the mean luminance
  void saturation(float factor);            // away from (or towards) every pixel's luminance
  void rotate_hue(float turns);             // of the color circle
  void light(const float (&alpha)[3]);      // along the principal components of ImageNet's colors

 private:
  float luminance(int64_t pixel) const;
  void round();  // what storing between two changes does
  int64_t pixels_, channels_;
  DType dtype_;
  std::vector<float> values_;
};

// Shape (height, width, 1 or 3) of input and output.
void infer_color(InferContext& c);

}  // namespace hybridnet::ops
