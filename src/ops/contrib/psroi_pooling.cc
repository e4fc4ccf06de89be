// _contrib_PSROIPooling: means over the bins of regions; each bin reads its own channels.
//   Dai et al.: R-FCN: Object Detection via Region-based Fully Convolutional Networks, NIPS 2016.
#include <algorithm>
#include <cmath>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/elementwise/integers.h"
#include "ops/contrib/region_reads.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kPool{"_contrib_PSROIPooling"}, kBackward{"_backward_PSROIPooling"};

struct PsRoiParams {
  double spatial_scale;
  int32_t output_dim, pooled_size, group_size;
  Tuple data_shape;
  int64_t groups() const { return group_size > 0 ? group_size : pooled_size; }
};

struct PoolParams : PsRoiParams {
  static void describe(ParamSchema<PoolParams>& schema);
};
struct BackwardParams : PsRoiParams {
  static void describe(ParamSchema<BackwardParams>& schema);
};

template <typename P>
void describe_pooling(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M PsRoiParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("spatial_scale", &PsRoiParams::spatial_scale)
      .doc("Ratio of the size of data to the size of the image whose coordinates the regions use.");
  field("output_dim", &PsRoiParams::output_dim).at_least(1).doc("Channels of the output.");
  field("pooled_size", &PsRoiParams::pooled_size).at_least(1).doc("Bins along each side of a region.");
  field("group_size", &PsRoiParams::group_size)
      .default_value(0)
      .at_least(0)
      .doc("Groups of channels along each side; 0: pooled_size.");
}
void PoolParams::describe(ParamSchema<PoolParams>& schema) { describe_pooling(schema); }
void BackwardParams::describe(ParamSchema<BackwardParams>& schema) {
  describe_pooling(schema);
  schema.field("data_shape", static_cast<Tuple BackwardParams::*>(&PsRoiParams::data_shape)).doc("Shape of data.");
}

// The mean over each bin. Corners of regions are rounded to pixels of the image. The first and last pixels of a bin are
// rounded outwards, so bins may overlap.
template <typename T>
RegionReads<accumulator_t<T>> bins_of(const PsRoiParams& p, const T* region, const Shape& data) {
  using A = accumulator_t<T>;
  const A scale = static_cast<A>(p.spatial_scale);
  const A left = std::round(static_cast<A>(region[1])) * scale, top = std::round(static_cast<A>(region[2])) * scale;
  const A right = (std::round(static_cast<A>(region[3])) + 1) * scale,
          bottom = (std::round(static_cast<A>(region[4])) + 1) * scale;
  const A bin_w = std::max(right - left, A(0.1)) / static_cast<A>(p.pooled_size),
          bin_h = std::max(bottom - top, A(0.1)) / static_cast<A>(p.pooled_size);
  const auto bound = [](A position, int64_t size) {
    return kernels::to_integer(std::clamp(position, A(0), static_cast<A>(size)));
  };
  RegionReads<A> reads;
  reads.image = image_of_region(region, data[0]);
  for (int64_t y = 0; y < p.pooled_size; ++y) {
    const int64_t y0 = bound(std::floor(static_cast<A>(y) * bin_h + top), data[2]),
                  y1 = bound(std::ceil(static_cast<A>(y + 1) * bin_h + top), data[2]);
    for (int64_t x = 0; x < p.pooled_size; ++x) {
      const int64_t x0 = bound(std::floor(static_cast<A>(x) * bin_w + left), data[3]),
                    x1 = bound(std::ceil(static_cast<A>(x + 1) * bin_w + left), data[3]);
      const int64_t area = std::max<int64_t>(y1 - y0, 0) * std::max<int64_t>(x1 - x0, 0);
      for (int64_t row = y0; row < y1; ++row)
        for (int64_t column = x0; column < x1; ++column) reads.add(row * data[3] + column, A(1) / static_cast<A>(area));
      reads.end_bin();
    }
  }
  return reads;
}

// The channel of data that a bin of an output channel reads.
int64_t plane_of(const PsRoiParams& p, int64_t channel, int64_t bin) {
  const int64_t groups = p.groups(), y = bin / p.pooled_size * groups / p.pooled_size,
                x = bin % p.pooled_size * groups / p.pooled_size;
  return (channel * groups + y) * groups + x;
}

void require_channels(const PsRoiParams& p, const Shape& data, const char* input) {
  const int64_t channels =
      checked_times(checked_times(p.output_dim, p.groups(), "group_size"), p.groups(), "group_size");
  if (!data.rank_known() || data[1] == kUnknownDim || data[1] == channels) return;
  throw ShapeError({.input = input,
                    .expected = "output_dim * group_size^2 = " + std::to_string(channels) + " channels",
                    .given = "shape " + data.str()});
}

void infer_pool(const PoolParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  require_channels(p, c.in_shape(0), "data");
  c.set_in_shape(1, Shape({kUnknownDim, 5}));
  c.set_out_shape(0, Shape({c.in_shape(1)[0], p.output_dim, p.pooled_size, p.pooled_size}));
}

void run_pool(const PoolParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    pool_regions((*a.in[1].shape)[0], p.output_dim, data[1], data[2] * data[3], a.in[0].as<T>(), a.out[0].as<T>(),
                 [&](int64_t r) { return bins_of(p, a.in[1].as<T>() + 5 * r, data); },
                 [&](int64_t c, int64_t b) { return plane_of(p, c, b); });
  });
}

void run_backward(const BackwardParams& p, const KernelArgs& a) {
  const Shape& data = p.data_shape;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    spread_regions((*a.in[1].shape)[0], p.output_dim, data[1], data[2] * data[3], data[0], a.in[0].as<T>(),
                   a.out[0].as<T>(), [&](int64_t r) { return bins_of(p, a.in[1].as<T>() + 5 * r, data); },
                   [&](int64_t c, int64_t b) { return plane_of(p, c, b); });
  });
}

template <typename To, typename From>
ParamsPtr as_params(const From& p, const Shape& data_shape) {
  To q;
  static_cast<PsRoiParams&>(q) = p;
  q.data_shape = data_shape;
  return ParamSchema<To>::box(q);
}

}  // namespace

void register_psroi_pooling(OpRegistry& ops) {
  Sample s;
  s.inputs = {{1, 8, 4, 5}, {3, 5}};
  s.attrs = {{"spatial_scale", "0.7"}, {"output_dim", "2"}, {"pooled_size", "2"}};
  s.low = 0.0;
  s.high = 0.9;
  s.check_gradient = false;
  s.note = "constant in the regions almost everywhere: gradients of regions are zero";
  Sample grouped = s;
  grouped.inputs = {{1, 4, 5, 5}, {2, 5}};
  grouped.attrs = {{"spatial_scale", "2"}, {"output_dim", "1"}, {"pooled_size", "3"}, {"group_size", "2"}};
  ops.declare<PoolParams>("_contrib_PSROIPooling")
      .doc(
          "Means of the bins of regions; bin (y, x) of output channel c is read from channel (c * group_size + gy) * "
          "group_size + gx.")
      .input("data", "(batch, output_dim * group_size^2, height, width)")
      .input("rois", "(regions, 5): image, left, top, right, bottom in the image's pixels")
      .output("output", "(regions, output_dim, pooled_size, pooled_size)")
      .infer(infer_pool)
      .cpu(run_pool, kFloating)
      .may_raise()
      .gradient(
          [](const PoolParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{
                call(kBackward, {g.output_grad(0), g.input(1)}, as_params<BackwardParams>(p, g.input_spec(0).shape)),
                Value{}};
          },
          Saves::of({1}))
      .amp(AmpType::kWidest)
      .sample(s)
      .sample(grouped);
  Sample back = s;
  back.inputs = {{3, 2, 2, 2}, {3, 5}};
  back.attrs.emplace_back("data_shape", "(1, 8, 4, 5)");
  ops.declare<BackwardParams>("_backward_PSROIPooling")
      .doc("The gradient of _contrib_PSROIPooling: its adjoint.")
      .input("output_grad", "(regions, output_dim, pooled_size, pooled_size)")
      .input("rois", "same as in _contrib_PSROIPooling")
      .output("output", "shape data_shape")
      .infer([](const BackwardParams& p, InferContext& c) {
        c.unify_dtypes();
        c.set_in_shape(1, Shape({c.in_shape(0).rank_known() ? c.in_shape(0)[0] : kUnknownDim, 5}));
        c.set_out_shape(0, p.data_shape);
      })
      .cpu(run_backward, kFloating)
      .may_raise()
      .gradient(
          [](const BackwardParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kPool, {g.output_grad(0), g.input(1)}, as_params<PoolParams>(p, Shape())), Value{}};
          },
          Saves::of({1}))
      .internal()
      .sample(back);
}

}  // namespace hybridnet::ops
