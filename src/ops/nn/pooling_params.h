// Parameters, shapes and sizes that the pooling operators share.
#pragma once

#include "kernels/conv/pooling.h"
#include "ops/nn/image_layout.h"

namespace hybridnet::ops {

using kernels::PoolType;

enum class PoolConvention : int32_t { kValid, kFull, kSame };

struct PoolingParams {
  Tuple kernel, stride, pad;
  PoolType pool_type = PoolType::kMax;
  PoolConvention pooling_convention = PoolConvention::kValid;
  bool global_pool = false, cudnn_off = false;
  std::optional<int32_t> p_value;
  std::optional<bool> count_include_pad;
  std::optional<ImageLayout> layout;

  // Number of spatial axes; `ndim` of the data defines it if the kernel does not.
  int spatial(int ndim) const { return global_pool || kernel.ndim() == 0 ? ndim - 2 : kernel.ndim(); }
  ImageAxes axes(int ndim) const { return ImageAxes(spatial(ndim), is_channels_last(layout)); }
  static void describe(ParamSchema<PoolingParams>& schema);
};

template <typename P>
void describe_pooling_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M PoolingParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("kernel", &PoolingParams::kernel).default_value(Tuple::scalar()).doc("Window: (w,), (h, w) or (d, h, w).");
  field("pool_type", &PoolingParams::pool_type)
      .default_value("max")
      .choice("max", PoolType::kMax)
      .choice("avg", PoolType::kAvg)
      .choice("sum", PoolType::kSum)
      .choice("lp", PoolType::kLp)
      .doc("The reduction of each window.");
  field("global_pool", &PoolingParams::global_pool).default_value(false).doc("Whether the window is the whole image.");
  field("cudnn_off", &PoolingParams::cudnn_off).default_value(false).hidden();
  field("pooling_convention", &PoolingParams::pooling_convention)
      .default_value("valid")
      .choice("full", PoolConvention::kFull)
      .choice("valid", PoolConvention::kValid)
      .choice("same", PoolConvention::kSame)
      .doc(
          "valid: windows inside the padded image only; full: also a window over the rest; same: ceil(size / stride) "
          "outputs.");
  field("stride", &PoolingParams::stride)
      .default_value(Tuple::scalar())
      .doc("Strides of the window; empty: 1 everywhere.");
  field("pad", &PoolingParams::pad).default_value(Tuple::scalar()).doc("Padding on both sides; empty: none.");
  field("p_value", &PoolingParams::p_value).none_by_default().range(1, 3).doc("Exponent of pool_type lp.");
  field("count_include_pad", &PoolingParams::count_include_pad)
      .none_by_default()
      .doc("Whether an average includes the padding; None: True.");
  with_layouts(field("layout", &PoolingParams::layout)).doc("Order of the axes; None: channels second.");
}

// Throws ParamError if the fields contradict each other.
void check_pooling(const PoolingParams& p);

// Infers the shapes of input 0 and output 0.
void infer_pooling(const PoolingParams& p, InferContext& c);

// Sizes of the pooling that maps x to y. Both shapes are logical.
kernels::PoolGeometry pool_geometry(const PoolingParams& p, const Shape& x, const Shape& y, bool linked_last);

}  // namespace hybridnet::ops
