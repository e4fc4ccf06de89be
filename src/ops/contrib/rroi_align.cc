// _contrib_RROIAlign: bins of rotated regions, read by bilinear interpolation.
//   Ma et al.: Arbitrary-Oriented Scene Text Detection via Rotation Proposals, IEEE Transactions on Multimedia 2018.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "hybridnet/declare.h"
#include "ops/contrib/region_reads.h"
#include "ops/emit.h"
#include "ops/nn/roi_params.h"

namespace hybridnet::ops {
namespace {

const OpRef kAlign{"_contrib_RROIAlign"}, kBackward{"_backward_RROIAlign"};

struct RotatedParams {
  Tuple pooled_size, data_shape;
  double spatial_scale;
  int32_t sampling_ratio;
};
struct AlignParams : RotatedParams {
  static void describe(ParamSchema<AlignParams>& schema);
};
struct AlignBackwardParams : RotatedParams {
  static void describe(ParamSchema<AlignBackwardParams>& schema);
};

template <typename P>
void describe_align(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M RotatedParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("pooled_size", &RotatedParams::pooled_size).doc("Bins of a region: (height, width).");
  field("spatial_scale", &RotatedParams::spatial_scale)
      .doc("Ratio of the size of data to the size of the image whose coordinates the regions use.");
  field("sampling_ratio", &RotatedParams::sampling_ratio)
      .default_value(-1)
      .doc("Points per bin along each side, at most 256; not positive: the number of pixels of a bin, at most 1024.");
  schema.check([](const P& p) {
    check_pooled_size(p.pooled_size);
    check_sampling_ratio("sampling_ratio", p.sampling_ratio);
  });
}
void AlignParams::describe(ParamSchema<AlignParams>& schema) { describe_align(schema); }
void AlignBackwardParams::describe(ParamSchema<AlignBackwardParams>& schema) {
  describe_align(schema);
  schema.field("data_shape", static_cast<Tuple AlignBackwardParams::*>(&RotatedParams::data_shape))
      .doc("Shape of data.");
}

// Adds up to four pixels around a point. Points up to one pixel outside are moved to the border; others read nothing.
template <typename A>
void add_point(RegionReads<A>& reads, A y, A x, const Shape& data, A weight) {
  const int64_t height = data[2], width = data[3];
  if (!(y >= -1 && y <= static_cast<A>(height) && x >= -1 && x <= static_cast<A>(width))) return;
  if (height == 0 || width == 0) return;
  y = std::clamp(y, A(0), static_cast<A>(height - 1));
  x = std::clamp(x, A(0), static_cast<A>(width - 1));
  const int64_t y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x), y1 = std::min(y0 + 1, height - 1),
                x1 = std::min(x0 + 1, width - 1);
  const A dy = y - static_cast<A>(y0), dx = x - static_cast<A>(x0);
  reads.add(y0 * width + x0, weight * (1 - dy) * (1 - dx));
  reads.add(y0 * width + x1, weight * (1 - dy) * dx);
  reads.add(y1 * width + x0, weight * dy * (1 - dx));
  reads.add(y1 * width + x1, weight * dy * dx);
}

template <typename T>
RegionReads<accumulator_t<T>> bins_of(const RotatedParams& p, const T* region, const Shape& data) {
  using A = accumulator_t<T>;
  const A scale = static_cast<A>(p.spatial_scale);
  const A center_x = static_cast<A>(region[1]) * scale, center_y = static_cast<A>(region[2]) * scale;
  const A width = std::max(static_cast<A>(region[3]) * scale, A(1)),
          height = std::max(static_cast<A>(region[4]) * scale, A(1));
  const A angle = static_cast<A>(region[5]) * static_cast<A>(std::numbers::pi / 180), cosine = std::cos(angle),
          sine = std::sin(angle);
  const A bin_h = height / static_cast<A>(p.pooled_size[0]), bin_w = width / static_cast<A>(p.pooled_size[1]);
  const int64_t rows = points_per_side(p.sampling_ratio, bin_h), columns = points_per_side(p.sampling_ratio, bin_w);
  const A weight = A(1) / static_cast<A>(rows * columns);
  RegionReads<A> reads;
  reads.image = image_of_region(region, data[0]);
  for (int64_t by = 0; by < p.pooled_size[0]; ++by) {
    for (int64_t bx = 0; bx < p.pooled_size[1]; ++bx) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const A y = -height / 2 + bin_h * (static_cast<A>(by) + (static_cast<A>(i) + A(0.5)) / static_cast<A>(rows));
          const A x =
              -width / 2 + bin_w * (static_cast<A>(bx) + (static_cast<A>(j) + A(0.5)) / static_cast<A>(columns));
          add_point(reads, y * cosine - x * sine + center_y, x * cosine + y * sine + center_x, data, weight);
        }
      }
      reads.end_bin();
    }
  }
  return reads;
}

void run_align(const AlignParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    pool_regions((*a.in[1].shape)[0], data[1], data[1], data[2] * data[3], a.in[0].as<T>(), a.out[0].as<T>(),
                 [&](int64_t r) { return bins_of(p, a.in[1].as<T>() + 6 * r, data); },
                 [](int64_t c, int64_t) { return c; });
  });
}

void run_backward(const AlignBackwardParams& p, const KernelArgs& a) {
  const Shape& data = p.data_shape;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    spread_regions((*a.in[1].shape)[0], data[1], data[1], data[2] * data[3], data[0], a.in[0].as<T>(), a.out[0].as<T>(),
                   [&](int64_t r) { return bins_of(p, a.in[1].as<T>() + 6 * r, data); },
                   [](int64_t c, int64_t) { return c; });
  });
}

template <typename To, typename From>
ParamsPtr as_params(const From& p, const Shape& data_shape) {
  To q;
  static_cast<RotatedParams&>(q) = p;
  q.data_shape = data_shape;
  return ParamSchema<To>::box(q);
}

}  // namespace

void register_rroi_align(OpRegistry& ops) {
  Sample s;
  s.inputs = {{1, 2, 5, 6}, {3, 6}};
  s.attrs = {{"pooled_size", "(2, 3)"}, {"spatial_scale", "4"}};
  s.low = 0.1;
  s.high = 0.9;
  s.check_gradient = false;
  s.note = "gradients of regions are zero by definition";
  Sample sampled = s;
  sampled.attrs = {{"pooled_size", "(1, 2)"}, {"spatial_scale", "5"}, {"sampling_ratio", "2"}};
  ops.declare<AlignParams>("_contrib_RROIAlign")
      .doc(
          "Means of points in the bins of rotated regions, read by bilinear interpolation. Gradients of regions are "
          "zero.")
      .input("data", "(batch, channels, height, width)")
      .input("rois", "(regions, 6): image, x and y of the center, width, height, angle in degrees")
      .output("output", "(regions, channels, pooled height, pooled width)")
      .infer([](const AlignParams& p, InferContext& c) {
        c.unify_dtypes();
        c.set_in_shape(0, Shape::unknown(4));
        c.set_in_shape(1, Shape({kUnknownDim, 6}));
        c.set_out_shape(0, Shape({c.in_shape(1)[0], c.in_shape(0)[1], p.pooled_size[0], p.pooled_size[1]}));
      })
      .cpu(run_align, kFloating)
      .may_raise()
      .gradient(
          [](const AlignParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kBackward, {g.output_grad(0), g.input(1)},
                               as_params<AlignBackwardParams>(p, g.input_spec(0).shape)),
                          Value{}};
          },
          Saves::of({1}))
      .amp(AmpType::kWidest)
      .sample(s)
      .sample(sampled);
  Sample back = s;
  back.inputs = {{3, 2, 2, 3}, {3, 6}};
  back.attrs.emplace_back("data_shape", "(1, 2, 5, 6)");
  ops.declare<AlignBackwardParams>("_backward_RROIAlign")
      .doc("The gradient of _contrib_RROIAlign: its adjoint.")
      .input("output_grad", "(regions, channels, pooled height, pooled width)")
      .input("rois", "same as in _contrib_RROIAlign")
      .output("output", "shape data_shape")
      .infer([](const AlignBackwardParams& p, InferContext& c) {
        c.unify_dtypes();
        c.set_in_shape(1, Shape({c.in_shape(0).rank_known() ? c.in_shape(0)[0] : kUnknownDim, 6}));
        c.set_out_shape(0, p.data_shape);
      })
      .cpu(run_backward, kFloating)
      .may_raise()
      .gradient(
          [](const AlignBackwardParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kAlign, {g.output_grad(0), g.input(1)}, as_params<AlignParams>(p, Shape())), Value{}};
          },
          Saves::of({1}))
      .internal()
      .sample(back);
}

}  // namespace hybridnet::ops
