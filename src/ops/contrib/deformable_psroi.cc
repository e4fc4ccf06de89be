// _contrib_DeformablePSROIPooling: means over points in the bins of regions; predicted offsets displace the bins.
//   Dai et al.: Deformable Convolutional Networks, ICCV 2017, section 2.2.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/contrib/region_reads.h"
#include "ops/emit.h"
#include "ops/nn/roi_params.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_backward_DeformablePSROIPooling"};

struct PoolingParams {
  double spatial_scale, trans_std;
  int32_t output_dim, group_size, pooled_size, part_size, sample_per_part;
  bool no_trans;
  static void describe(ParamSchema<PoolingParams>& schema) {
    schema.field("spatial_scale", &PoolingParams::spatial_scale)
        .doc("Ratio of the size of data to the size of the image whose coordinates the regions use.");
    schema.field("output_dim", &PoolingParams::output_dim).at_least(1).doc("Channels of the output.");
    schema.field("group_size", &PoolingParams::group_size)
        .at_least(1)
        .doc("Groups of channels along each side of a region.");
    schema.field("pooled_size", &PoolingParams::pooled_size).at_least(1).doc("Bins along each side of a region.");
    schema.field("part_size", &PoolingParams::part_size)
        .default_value(0)
        .at_least(0)
        .doc("Number of offsets along each side; 0: pooled_size.");
    schema.field("sample_per_part", &PoolingParams::sample_per_part)
        .default_value(1)
        .range(1, kMaxSamplingRatio)
        .doc("Points per bin along each side.");
    schema.field("trans_std", &PoolingParams::trans_std)
        .default_value(0.0)
        .doc("Factor of the offsets, which are fractions of a region.");
    schema.field("no_trans", &PoolingParams::no_trans).default_value(false).doc("Whether the bins are not displaced.");
  }
  int64_t parts() const { return part_size > 0 ? part_size : pooled_size; }
  int64_t bins() const { return static_cast<int64_t>(pooled_size) * pooled_size; }
  int64_t channels() const {
    return checked_times(checked_times(output_dim, group_size, "group_size"), group_size, "group_size");
  }
  int64_t plane_of(int64_t channel, int64_t y, int64_t x) const {
    return (channel * group_size + y * group_size / pooled_size) * group_size + x * group_size / pooled_size;
  }
};

void check_data(const PoolingParams& p, const Shape& data, const std::string& input) {
  if (data[1] == kUnknownDim || data[1] == p.channels()) return;
  throw ShapeError({.input = input,
                    .expected = "output_dim * group_size^2 = " + std::to_string(p.channels()) + " channels",
                    .given = "shape " + data.str()});
}

// The inputs data, rois and trans begin at index `first`.
void infer_inputs(const PoolingParams& p, InferContext& c, int first) {
  c.unify_dtypes();
  c.set_in_shape(first, Shape::unknown(4));
  check_data(p, c.in_shape(first), c.input_name(first));
  c.set_in_shape(first + 1, Shape({kUnknownDim, 5}));
  if (p.no_trans) return;
  c.set_in_shape(first + 2, Shape({c.in_shape(first + 1)[0], kUnknownDim, p.parts(), p.parts()}));
  const int64_t planes = c.in_shape(first + 2)[1];
  if (planes == kUnknownDim || (planes > 0 && planes % 2 == 0 && p.output_dim % (planes / 2) == 0)) return;
  throw ShapeError(
      {.input = c.input_name(first + 2),
       .expected = "two planes, x and y, per class, and classes that divide output_dim=" + std::to_string(p.output_dim),
       .given = "shape " + c.in_shape(first + 2).str()});
}

// The bins of one region.
template <typename A>
struct Region {
  A left, top, width, height;
  template <typename T>
  static Region load(const T* r, A scale) {
    const A left = std::round(static_cast<A>(r[1])) * scale - A(0.5),
            top = std::round(static_cast<A>(r[2])) * scale - A(0.5);
    const A right = (std::round(static_cast<A>(r[3])) + 1) * scale - A(0.5),
            bottom = (std::round(static_cast<A>(r[4])) + 1) * scale - A(0.5);
    return {left, top, std::max(right - left, A(0.1)), std::max(bottom - top, A(0.1))};
  }
};

// The pixels around one point of a bin.
template <typename A>
struct Point {
  int64_t index[4];
  A x, y;                 // fractions of a pixel beyond the first of the four
  bool moves_x, moves_y;  // false if the coordinate is clamped to the border
};

// Calls f(offset of the plane in data, output index, index of x in trans or -1, points) for every bin of every channel.
template <typename T, typename F>
void for_each_bin(const PoolingParams& p, const Shape& data, const T* rois, const T* trans, int64_t trans_planes,
                  int64_t region, F&& f) {
  using A = accumulator_t<T>;
  const Region<A> r = Region<A>::load(rois + 5 * region, static_cast<A>(p.spatial_scale));
  const int64_t image = image_of_region(rois + 5 * region, data[0]), height = data[2], width = data[3],
                parts = p.parts();
  const int64_t classes = trans ? trans_planes / 2 : 1, per_class = p.output_dim / classes;
  const A bin_w = r.width / static_cast<A>(p.pooled_size), bin_h = r.height / static_cast<A>(p.pooled_size);
  Temporary<Point<A>> points;
  for (int64_t c = 0; c < p.output_dim; ++c) {
    for (int64_t bin = 0; bin < p.bins(); ++bin) {
      const int64_t y = bin / p.pooled_size, x = bin % p.pooled_size;
      const int64_t place = trans
                                ? ((region * classes + c / per_class) * 2 * parts + y * parts / p.pooled_size) * parts +
                                      x * parts / p.pooled_size
                                : -1;
      const A move_x = trans ? static_cast<A>(trans[place]) * static_cast<A>(p.trans_std) * r.width : A(0);
      const A move_y =
          trans ? static_cast<A>(trans[place + parts * parts]) * static_cast<A>(p.trans_std) * r.height : A(0);
      points.clear();
      for (int64_t s = 0; s < static_cast<int64_t>(p.sample_per_part) * p.sample_per_part; ++s) {
        A px = r.left + move_x +
               bin_w * (static_cast<A>(x) + static_cast<A>(s % p.sample_per_part) / static_cast<A>(p.sample_per_part));
        A py = r.top + move_y +
               bin_h * (static_cast<A>(y) + static_cast<A>(s / p.sample_per_part) / static_cast<A>(p.sample_per_part));
        const bool inside = height > 0 && width > 0 && px >= A(-0.5) && px <= static_cast<A>(width) - A(0.5) &&
                            py >= A(-0.5) && py <= static_cast<A>(height) - A(0.5);
        if (!inside) continue;
        const bool moves_x = px >= 0 && px <= static_cast<A>(width - 1),
                   moves_y = py >= 0 && py <= static_cast<A>(height - 1);
        px = std::clamp(px, A(0), static_cast<A>(width - 1));
        py = std::clamp(py, A(0), static_cast<A>(height - 1));
        const int64_t x0 = static_cast<int64_t>(px), y0 = static_cast<int64_t>(py), x1 = std::min(x0 + 1, width - 1),
                      y1 = std::min(y0 + 1, height - 1);
        points.push_back({{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
                          px - static_cast<A>(x0),
                          py - static_cast<A>(y0),
                          moves_x,
                          moves_y});
      }
      f((image * data[1] + p.plane_of(c, y, x)) * height * width, (region * p.output_dim + c) * p.bins() + bin, place,
        points, r);
    }
  }
}

void run_pooling(const PoolingParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const T* trans = p.no_trans ? nullptr : a.in[2].as<T>();
    const Shape& pooled = *a.out[0].shape;
    parallel_for(pooled[0], 20.0 * static_cast<double>(pooled.size(1, pooled.ndim())), [&](int64_t begin, int64_t end) {
      for (int64_t region = begin; region < end; ++region) {
        for_each_bin(
            p, data, a.in[1].as<T>(), trans, trans ? (*a.in[2].shape)[1] : 0, region,
            [&](int64_t plane, int64_t out, int64_t, const Temporary<Point<A>>& points, const Region<A>&) {
              const T* d = a.in[0].as<T>() + plane;
              A sum = 0;
              for (const Point<A>& q : points) {
                sum += (1 - q.y) * ((1 - q.x) * static_cast<A>(d[q.index[0]]) + q.x * static_cast<A>(d[q.index[1]])) +
                       q.y * ((1 - q.x) * static_cast<A>(d[q.index[2]]) + q.x * static_cast<A>(d[q.index[3]]));
              }
              a.out[0].as<T>()[out] = static_cast<T>(points.empty() ? A(0) : sum / static_cast<A>(points.size()));
              a.out[1].as<T>()[out] = static_cast<T>(static_cast<A>(points.size()));
            });
      }
    });
  });
}

// Inputs: output_grad, data, rois, trans. Regions share pixels, so a single thread accumulates.
void run_backward(const PoolingParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[1].shape;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const T* trans = p.no_trans ? nullptr : a.in[3].as<T>();
    const int64_t planes = trans ? (*a.in[3].shape)[1] : 0, part_plane = p.parts() * p.parts();
    Temporary<A> data_grad(static_cast<size_t>(a.in[1].size()), A(0)),
        trans_grad(static_cast<size_t>(trans ? a.in[3].size() : 0), A(0));
    for (int64_t region = 0; region < (*a.in[2].shape)[0]; ++region) {
      for_each_bin(
          p, data, a.in[2].as<T>(), trans, planes, region,
          [&](int64_t plane, int64_t out, int64_t place, const Temporary<Point<A>>& points, const Region<A>& r) {
            if (points.empty()) return;
            const A arriving = static_cast<A>(a.in[0].as<T>()[out]) / static_cast<A>(points.size()),
                    std = static_cast<A>(p.trans_std);
            const T* d = a.in[1].as<T>() + plane;
            A* grad = data_grad.data() + plane;
            for (const Point<A>& q : points) {
              const A weight[4] = {(1 - q.y) * (1 - q.x), (1 - q.y) * q.x, q.y * (1 - q.x), q.y * q.x};
              for (int i = 0; i < 4; ++i) grad[q.index[i]] += weight[i] * arriving;
              if (!trans) continue;
              const A v[4] = {static_cast<A>(d[q.index[0]]), static_cast<A>(d[q.index[1]]),
                              static_cast<A>(d[q.index[2]]), static_cast<A>(d[q.index[3]])};
              if (q.moves_x)
                trans_grad[static_cast<size_t>(place)] +=
                    arriving * std * r.width * ((1 - q.y) * (v[1] - v[0]) + q.y * (v[3] - v[2]));
              if (q.moves_y)
                trans_grad[static_cast<size_t>(place + part_plane)] +=
                    arriving * std * r.height * ((1 - q.x) * (v[2] - v[0]) + q.x * (v[3] - v[1]));
            }
          });
    }
    for (size_t i = 0; i < data_grad.size(); ++i) a.out[0].as<T>()[i] = static_cast<T>(data_grad[i]);
    for (size_t i = 0; i < trans_grad.size(); ++i) a.out[1].as<T>()[i] = static_cast<T>(trans_grad[i]);
  });
}

Values pooling_gradient(const PoolingParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  Values inputs = {g.output_grad(0)};
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  const Values found = call_all(kBackward, inputs, ParamSchema<PoolingParams>::box(p));
  Values grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = found[0];
  if (!p.no_trans) grads[2] = found[1];
  return grads;
}

}  // namespace

void register_deformable_psroi(OpRegistry& ops) {
  Sample s;
  s.inputs = {{1, 8, 4, 5}, {3, 5}, {3, 4, 2, 2}};
  s.attrs = {{"spatial_scale", "0.9"}, {"output_dim", "2"},      {"group_size", "2"},
             {"pooled_size", "2"},     {"sample_per_part", "2"}, {"trans_std", "0.1"}};
  s.low = 0.1;
  s.high = 0.45;
  s.check_gradient = false;
  s.note =
      "constant in the regions almost everywhere: gradients of regions are zero; data's and offsets' have a test of "
      "their own";
  Sample fixed = s;
  fixed.inputs = {{1, 4, 5, 5}, {2, 5}};
  fixed.attrs = {
      {"spatial_scale", "2"}, {"output_dim", "1"}, {"group_size", "2"}, {"pooled_size", "3"}, {"no_trans", "True"}};
  ops.declare<PoolingParams>("_contrib_DeformablePSROIPooling")
      .doc("Means of points in the bins of regions, read by bilinear interpolation; offsets displace the bins.")
      .input("data", "(batch, output_dim * group_size^2, height, width)")
      .input("rois", "(regions, 5): image, left, top, right, bottom in the image's pixels")
      .optional_input("trans",
                      "(regions, 2 * classes, part_size, part_size): x and y per class, as fractions of the region; "
                      "absent with no_trans")
      .output("output", "(regions, output_dim, pooled_size, pooled_size)")
      .output("top_count", "shape of output: points inside of the image")
      .visible_outputs(1)
      .num_inputs([](const PoolingParams& p) { return p.no_trans ? 2 : 3; })
      .infer([](const PoolingParams& p, InferContext& c) {
        infer_inputs(p, c, 0);
        for (int i = 0; i < 2; ++i)
          c.set_out_shape(i, Shape({c.in_shape(1)[0], p.output_dim, p.pooled_size, p.pooled_size}));
      })
      .cpu(run_pooling, kFloating)
      .may_raise()
      .gradient(pooling_gradient, Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample(s)
      .sample(fixed);
  Sample back = s;
  back.inputs.insert(back.inputs.begin(), Shape({3, 2, 2, 2}));
  ops.declare<PoolingParams>("_backward_DeformablePSROIPooling")
      .doc("Gradients of _contrib_DeformablePSROIPooling.")
      .input("output_grad", "(regions, output_dim, pooled_size, pooled_size)")
      .input("data", "same as in _contrib_DeformablePSROIPooling")
      .input("rois", "same as in _contrib_DeformablePSROIPooling")
      .optional_input("trans", "same as in _contrib_DeformablePSROIPooling")
      .output("data_grad", "shape of data")
      .output("trans_grad", "shape of trans")
      .num_inputs([](const PoolingParams& p) { return p.no_trans ? 3 : 4; })
      .num_outputs([](const PoolingParams& p) { return p.no_trans ? 1 : 2; })
      .infer([](const PoolingParams& p, InferContext& c) {
        infer_inputs(p, c, 1);
        c.set_in_shape(0, Shape({c.in_shape(2)[0], p.output_dim, p.pooled_size, p.pooled_size}));
        c.set_out_shape(0, c.in_shape(1));
        if (!p.no_trans) c.set_out_shape(1, c.in_shape(3));
      })
      .cpu(run_backward, kFloating)
      .may_raise()
      .internal()
      .gradient(kNotDifferentiable)
      .sample(back);
}

}  // namespace hybridnet::ops
