// Parameters and shapes that quantized dense layers share.
#pragma once

#include "hybridnet/op.h"
#include "kernels/conv/conv_geometry.h"

namespace hybridnet::ops {

struct QuantizedDenseParams {
  int64_t num_hidden;
  bool no_bias, flatten;
  static void describe(ParamSchema<QuantizedDenseParams>& schema) { describe_fields(schema); }
  template <typename P>
  static void describe_fields(ParamSchema<P>& schema) {
    const auto field = [&]<typename M>(const char* name, M QuantizedDenseParams::*member) {
      return schema.field(name, static_cast<M P::*>(member));
    };
    field("num_hidden", &QuantizedDenseParams::num_hidden).at_least(1).doc("Number of outputs per row.");
    field("no_bias", &QuantizedDenseParams::no_bias)
        .default_value(false)
        .doc("Whether the bias input is absent, and its range where a bias has one.");
    field("flatten", &QuantizedDenseParams::flatten)
        .default_value(true)
        .doc("Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.");
  }
};

// Shapes of (data, weight, bias unless no_bias) -> output.
void infer_dense_shapes(const QuantizedDenseParams& p, InferContext& c);

// The convolution that is equivalent to the layer: the rows of data are the positions of an image with one line.
kernels::ConvGeometry dense_geometry(const Shape& data, bool flatten, int64_t hidden);

// Nanoseconds of a product with weights of bytes on one core: few rows take the time of reading the weights.
double dense_of_bytes_cost_ns(const Shape& data, bool flatten, int64_t hidden, double flops_per_ns = 150);

}  // namespace hybridnet::ops
