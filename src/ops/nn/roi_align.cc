// _contrib_ROIAlign: averages of interpolated points over each region of interest (He et al., Mask R-CNN, 2017).
#include <algorithm>
#include <cmath>
#include <vector>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/roi_arguments.h"
#include "ops/cost.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/nn/roi_params.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kRoiAlign{"_contrib_ROIAlign"}, kBackward{"_backward_ROIAlign"};

struct RoiAlignParams {
  Tuple pooled_size;
  float spatial_scale = 1;
  int32_t sample_ratio = -1;
  bool position_sensitive = false, aligned = false;
  int64_t bins() const { return pooled_size[0] * pooled_size[1]; }
  static void describe(ParamSchema<RoiAlignParams>& schema);
};

struct RoiAlignBackwardParams : RoiAlignParams {
  Tuple shape;
  static void describe(ParamSchema<RoiAlignBackwardParams>& schema);
};

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M RoiAlignParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("pooled_size", &RoiAlignParams::pooled_size).doc("(height, width) of the output.");
  field("spatial_scale", &RoiAlignParams::spatial_scale)
      .range(0, 1)
      .doc("Ratio of the size of data to the size of the image whose coordinates rois use.");
  field("sample_ratio", &RoiAlignParams::sample_ratio)
      .default_value(-1)
      .doc("Points along each axis of a window, at most 256; not positive: the number of pixels, at most 1024.");
  field("position_sensitive", &RoiAlignParams::position_sensitive)
      .default_value(false)
      .doc("Whether each window reads its own channels: channels of data = channels of output * windows.");
  field("aligned", &RoiAlignParams::aligned)
      .default_value(false)
      .doc("Whether coordinates are shifted by half a pixel, and regions may be smaller than a pixel.");
}

void RoiAlignParams::describe(ParamSchema<RoiAlignParams>& schema) {
  describe_fields(schema);
  schema.check([](const RoiAlignParams& p) {
    check_pooled_size(p.pooled_size);
    check_sampling_ratio("sample_ratio", p.sample_ratio);
  });
}
void RoiAlignBackwardParams::describe(ParamSchema<RoiAlignBackwardParams>& schema) {
  describe_fields(schema);
  schema.field("shape", &RoiAlignBackwardParams::shape).doc("Shape of data.");
  schema.check([](const RoiAlignBackwardParams& p) {
    check_pooled_size(p.pooled_size);
    check_sampling_ratio("sample_ratio", p.sample_ratio);
  });
}

void infer_roi_align(const RoiAlignParams& p, InferContext& c) {
  c.unify_dtypes();
  infer_regions(c);
  int64_t channels = c.in_shape(0)[1];
  if (p.position_sensitive && channels != kUnknownDim) {
    if (channels % p.bins() != 0) {
      throw ShapeError({.input = "data",
                        .expected = "channels that are a multiple of " + std::to_string(p.bins()),
                        .given = c.in_shape(0).str(),
                        .because = "position_sensitive is true and pooled_size is " + p.pooled_size.str()});
    }
    channels /= p.bins();
  }
  c.set_out_shape(0, Shape{c.in_shape(1)[0], channels, p.pooled_size[0], p.pooled_size[1]});
  c.set_in_shape(1, Shape{c.out_shape(0)[0], 5});
}

void infer_backward(const RoiAlignBackwardParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, p.shape);
}

// Points of one window along one axis, each between two neighbors. A point more than a pixel outside counts as 0.
template <typename T>
struct AxisPoint {
  int64_t low, high;
  T low_weight, high_weight;
};

template <typename T>
AxisPoint<T> axis_point(T at, int64_t size) {
  if (!(at >= T(-1) && at <= static_cast<T>(size)) || size == 0) return {0, 0, T(0), T(0)};
  at = std::max(at, T(0));
  const int64_t low = std::min(static_cast<int64_t>(at), size - 1);
  if (low >= size - 1) return {size - 1, size - 1, T(1), T(0)};
  return {low, low + 1, 1 - (at - static_cast<T>(low)), at - static_cast<T>(low)};
}

// The points of all windows of one region along one axis: `count` for each window.
template <typename T>
struct RegionAxis {
  int64_t count = 0;
  Temporary<AxisPoint<T>> points;

  RegionAxis(const RoiAlignParams& p, T low, T high, int64_t size, int64_t windows) {
    const T scale = static_cast<T>(p.spatial_scale), shift = p.aligned ? T(0.5) : T(0);
    const T start = low * scale - shift, end = high * scale - shift;
    const T length = p.aligned ? end - start : std::max(end - start, T(1));
    const T bin = length / static_cast<T>(windows);
    if (!(std::abs(start) < T(1e9)) || !(length > T(0)) || !(length < T(1e6))) return;  // invalid: reads no pixel
    count = points_per_side(p.sample_ratio, bin);
    for (int64_t k = 0; k < windows; ++k)
      for (int64_t i = 0; i < count; ++i) {
        const T at = start + static_cast<T>(k) * bin + (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(count);
        points.push_back(axis_point(at, size));
      }
  }
};

template <typename T>
struct Region {
  int64_t image;
  RegionAxis<T> x, y;
  Region(const RoiAlignParams& p, const T* roi, const Shape& data)
      : image(data[2] * data[3] == 0 ? -1 : image_of(roi[0], data[0])),  // -1: no pixel is read
        x(p, roi[1], roi[3], data[3], p.pooled_size[1]),
        y(p, roi[2], roi[4], data[2], p.pooled_size[0]) {}

  // Calls f(offset in the plane, weight) for the pixels of window (i, j); weights sum to 1 if all points are inside.
  template <typename F>
  void for_pixels(int64_t i, int64_t j, int64_t width, const F& f) const {
    const T share = T(1) / static_cast<T>(std::max<int64_t>(x.count * y.count, 1));
    for (int64_t a = i * y.count; a < (i + 1) * y.count; ++a) {
      const AxisPoint<T>& v = y.points[static_cast<size_t>(a)];
      for (int64_t b = j * x.count; b < (j + 1) * x.count; ++b) {
        const AxisPoint<T>& h = x.points[static_cast<size_t>(b)];
        f(v.low * width + h.low, share * v.low_weight * h.low_weight);
        f(v.low * width + h.high, share * v.low_weight * h.high_weight);
        f(v.high * width + h.low, share * v.high_weight * h.low_weight);
        f(v.high * width + h.high, share * v.high_weight * h.high_weight);
      }
    }
  }
};

// The plane of data that a window of an output channel reads.
int64_t plane_of(const RoiAlignParams& p, const Shape& data, int64_t image, int64_t channel, int64_t window) {
  return image * data[1] + (p.position_sensitive ? channel * p.bins() + window : channel);
}

template <typename T>
void align(const RoiAlignParams& p, const Shape& data, const T* in, const T* rois, const Shape& out, T* to) {
  const int64_t plane = data[2] * data[3];
  parallel_for(out[0], 10.0 * static_cast<double>(out.size(1, out.ndim())), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Region<T> region(p, rois + 5 * r, data);
      for (int64_t c = 0; c < out[1]; ++c)
        for (int64_t window = 0; window < p.bins(); ++window) {
          T sum = 0;
          if (region.image >= 0) {
            const T* from = in + plane_of(p, data, region.image, c, window) * plane;
            region.for_pixels(window / out[3], window % out[3], data[3], [&](int64_t at, T w) { sum += w * from[at]; });
          }
          to[(r * out[1] + c) * p.bins() + window] = sum;
        }
    }
  });
}

// Channels are independent: each is processed by one thread.
template <typename T>
void spread(const RoiAlignParams& p, const Shape& data, const T* values, const T* rois, const Shape& out, T* to) {
  const int64_t plane = data[2] * data[3];
  std::fill_n(to, data.size(), T(0));
  Temporary<Region<T>> regions;
  for (int64_t r = 0; r < out[0]; ++r) regions.emplace_back(p, rois + 5 * r, data);
  parallel_for(out[1], 10.0 * static_cast<double>(out[0] * out.size(2, out.ndim())), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      for (int64_t r = 0; r < out[0]; ++r) {
        const Region<T>& region = regions[static_cast<size_t>(r)];
        for (int64_t window = 0; region.image >= 0 && window < p.bins(); ++window) {
          const T value = values[(r * out[1] + c) * p.bins() + window];
          T* plane_to = to + plane_of(p, data, region.image, c, window) * plane;
          region.for_pixels(window / out[3], window % out[3], data[3],
                            [&](int64_t at, T w) { plane_to[at] += w * value; });
        }
      }
  });
}

// data: the shape of the images; out: that of the windows.
void run_on_device(const char* function, const RoiAlignParams& p, const Shape& data, const Shape& out,
                   const KernelArgs& a) {
  const device::RoiArguments r{.data = a.in[0].data,
                               .rois = a.in[1].data,
                               .out = a.out[0].data,
                               .regions = out[0],
                               .batch = data[0],
                               .channels = data[1],
                               .height = data[2],
                               .width = data[3],
                               .pooled_height = out[2],
                               .pooled_width = out[3],
                               .out_channels = out[1],
                               .scale = p.spatial_scale,
                               .sample_ratio = p.sample_ratio,
                               .position_sensitive = p.position_sensitive,
                               .aligned = p.aligned};
  on_device::launch("roi.cuh", "RoiArguments", on_device::with_dtype(function, a.in[0].dtype), a.out[0].size(), r);
}

void run_roi_align(const RoiAlignParams& p, const KernelArgs& a) {
  const auto run = [&]<typename T>(T) {
    if (device::current()) {
      report_device_images("_contrib_ROIAlign", a.in[1].as<T>(), (*a.out[0].shape)[0], (*a.in[0].shape)[0], true);
      return run_on_device("roi_align", p, *a.in[0].shape, *a.out[0].shape, a);
    }
    report_images("_contrib_ROIAlign", a.in[1].as<T>(), (*a.out[0].shape)[0], (*a.in[0].shape)[0], true);
    align<T>(p, *a.in[0].shape, a.in[0].as<T>(), a.in[1].as<T>(), *a.out[0].shape, a.out[0].as<T>());
  };
  a.in[0].dtype == DType::kFloat64 ? run(double{}) : run(float{});
}

void run_backward(const RoiAlignBackwardParams& p, const KernelArgs& a) {
  if (device::current()) return run_on_device("roi_align_gradient", p, *a.out[0].shape, *a.in[0].shape, a);
  const auto run = [&]<typename T>(T) {
    spread<T>(p, *a.out[0].shape, a.in[0].as<T>(), a.in[1].as<T>(), *a.in[0].shape, a.out[0].as<T>());
  };
  a.in[0].dtype == DType::kFloat64 ? run(double{}) : run(float{});
}

Values roi_align_gradient(const RoiAlignParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(2);
  RoiAlignBackwardParams q;
  static_cast<RoiAlignParams&>(q) = p;
  q.shape = g.input_spec(0).shape;
  return {call(kBackward, {g.output_grad(0), g.input(1)}, ParamSchema<RoiAlignBackwardParams>::box(std::move(q))),
          Value{}};
}

Values backward_gradient(const RoiAlignBackwardParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(2);
  return {call(kRoiAlign, {g.output_grad(0), g.input(1)}, ParamSchema<RoiAlignParams>::box(p)), Value{}};
}

Sample region_sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs, double high) {
  return Sample{.inputs = std::move(inputs),
                .attrs = std::move(attrs),
                .low = 0,
                .high = high,
                .check_gradient = false,
                .note = "regions have no gradient"};
}

}  // namespace

void register_roi_align(OpRegistry& ops) {
  ops.declare<RoiAlignParams>("_contrib_ROIAlign")
      .doc(
          "Averages of interpolated points in pooled_size windows over each region of interest. Coordinates are not "
          "rounded. Regions with an invalid image number give 0; a negative image number skips a region.")
      .input("data", "(batch, channels, height, width)")
      .input("rois", "(regions, 5): number of the image, then left, top, right and bottom; no gradient")
      .output("output", "(regions, channels, pooled_size); position_sensitive: channels / windows")
      .infer(infer_roi_align)
      .any_device()
      .cpu(run_roi_align, kFloating)
      .halves_through_float()
      .gradient(roi_align_gradient, Saves::of({1}))
      .cost([](const RoiAlignParams& p, auto, auto out) {
        return elements(out[0]) * 8 * (p.sample_ratio > 0 ? std::pow(p.sample_ratio, 2) : 4) + 300;
      })
      .amp(AmpType::kWidest)
      .sample(region_sample({{2, 2, 6, 5}, {3, 5}}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}}, 2.9))
      .sample(region_sample({{3, 1, 4, 4}, {2, 5}},
                            {{"pooled_size", "(3, 2)"}, {"spatial_scale", "0.5"}, {"sample_ratio", "2"}}, 7.0))
      .sample(region_sample({{2, 8, 4, 4}, {3, 5}},
                            {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}, {"position_sensitive", "True"}}, 3.0))
      .sample(region_sample({{2, 2, 4, 4}, {3, 5}},
                            {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}, {"aligned", "True"}}, 3.0))
      .sample(region_sample({{1, 2, 4, 4}, {0, 5}}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}}, 1.0));
  ops.declare<RoiAlignBackwardParams>("_backward_ROIAlign")
      .internal()
      .doc("Gradient of _contrib_ROIAlign for data.")
      .input("output_grad", "shape of the output of _contrib_ROIAlign")
      .input("rois", "same as in _contrib_ROIAlign")
      .output("data_grad", "shape given by the parameter")
      .infer(infer_backward)
      .any_device()
      .cpu(run_backward, kFloating)
      .halves_through_float()
      .gradient(backward_gradient, Saves::of({1}))
      .sample(region_sample({{3, 2, 2, 2}, {3, 5}},
                            {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}, {"shape", "(2, 2, 4, 4)"}}, 2.9));
}

}  // namespace hybridnet::ops
