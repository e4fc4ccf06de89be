#include "ops/nn/pooling_params.h"

#include <algorithm>

namespace hybridnet::ops {
namespace {

using kernels::PoolGeometry;

// True if `pad` is the same on all axes, whatever the number of its elements: zeros, or more equal numbers than axes.
bool is_one_padding(const Tuple& pad, int sizes) {
  const auto same = [&pad](int64_t v) { return v == pad[0]; };
  return std::all_of(pad.begin(), pad.end(), same) && (pad.ndim() <= 0 || pad[0] == 0 || pad.ndim() > sizes);
}

int64_t output_size(const InferContext& c, const PoolingParams& p, int i, int64_t in) {
  if (p.global_pool) return 1;
  if (in == kUnknownDim) return kUnknownDim;
  const int64_t stride = tuple_at(p.stride, i, 1), pad = tuple_at(p.pad, i, 0), kernel = p.kernel[i];
  if (p.pooling_convention == PoolConvention::kSame) return (in + stride - 1) / stride;
  const int64_t room = in + 2 * pad - kernel;
  if (room < 0) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "at least " + std::to_string(kernel - 2 * pad) + " elements along spatial axis " +
                                  std::to_string(i),
                      .given = std::to_string(in) + ", shape " + c.in_shape(0).str(),
                      .because = "the kernel covers " + std::to_string(kernel) + " and pad adds " +
                                 std::to_string(pad) + " on both sides"});
  }
  return 1 + (p.pooling_convention == PoolConvention::kFull ? (room + stride - 1) / stride : room / stride);
}

}  // namespace

void check_pooling(const PoolingParams& p) {
  const int sizes = p.kernel.ndim();
  if (sizes > 3 || (sizes < 1 && !p.global_pool)) {
    throw ParamError({.input = "kernel",
                      .expected = "1, 2 or 3 sizes",
                      .given = p.kernel.str(),
                      .fix = "give the kernel, or global_pool=True"});
  }
  if (p.pool_type == PoolType::kLp && !p.p_value) {
    throw ParamError({.input = "p_value", .expected = "1, 2 or 3", .given = "None", .because = "pool_type is lp"});
  }
  if (p.global_pool) return;
  check_tuple("kernel", p.kernel, sizes, 1);
  check_tuple("stride", p.stride, sizes, 1);
  check_tuple("pad", p.pad, is_one_padding(p.pad, sizes) ? p.pad.ndim() : sizes, 0);
  check_layout(p.layout, sizes);
  if (p.pooling_convention == PoolConvention::kSame)
    for (int i = 0; i < p.pad.ndim(); ++i)
      if (p.pad[i] != 0)
        throw ParamError(
            {.input = "pad", .expected = "0", .given = p.pad.str(), .because = "pooling_convention is same"});
}

void PoolingParams::describe(ParamSchema<PoolingParams>& schema) {
  describe_pooling_fields(schema);
  schema.check(check_pooling);
}

void infer_pooling(const PoolingParams& p, InferContext& c) {
  int ndim = c.in_shape(0).rank_known()              ? c.in_shape(0).ndim()
             : p.kernel.ndim() > 0 && !p.global_pool ? p.kernel.ndim() + 2
                                                     : kUnknownNdim;
  if (ndim == kUnknownNdim) return;
  if (ndim < 3 || ndim > 5) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "3 to 5 dimensions: batch, channels and space",
                      .given = "shape " + c.in_shape(0).str()});
  }
  const ImageAxes axes = p.axes(ndim);
  require_image(c, 0, axes);
  Shape out = Shape::unknown(ndim);
  out[0] = c.in_shape(0)[0];
  out[axes.channel] = c.in_shape(0)[axes.channel];
  for (int i = 0; i < axes.spatial; ++i) out[axes.first + i] = output_size(c, p, i, c.in_shape(0)[axes.first + i]);
  c.set_out_shape(0, out);
  Shape learned = Shape::unknown(ndim);
  learned[0] = c.out_shape(0)[0];
  learned[axes.channel] = c.out_shape(0)[axes.channel];
  c.set_in_shape(0, learned);
}

PoolGeometry pool_geometry(const PoolingParams& p, const Shape& x, const Shape& y, bool linked_last) {
  const ImageAxes axes = p.axes(x.ndim());
  const bool logical_last = is_channels_last(p.layout);
  if (logical_last && linked_last) {
    throw UnsupportedError({.message =
                                "channels-last memory was chosen for a node whose layout attribute has the channels "
                                "last already"});
  }
  PoolGeometry g;
  g.type = p.pool_type;
  g.power = p.p_value.value_or(2);
  g.count_pad = p.count_include_pad.value_or(true);
  g.channels_last = logical_last || linked_last;
  g.n = x[0];
  g.c = x[axes.channel];
  for (int i = 0; i < axes.spatial; ++i) {
    const size_t k = static_cast<size_t>(3 - axes.spatial + i);
    g.in[k] = x[axes.first + i];
    g.out[k] = y[axes.first + i];
    g.kernel[k] = p.global_pool ? g.in[k] : p.kernel[i];
    g.stride[k] = p.global_pool ? 1 : tuple_at(p.stride, i, 1);
    g.pad[k] = p.global_pool ? 0 : tuple_at(p.pad, i, 0);
  }
  return g;
}

}  // namespace hybridnet::ops
