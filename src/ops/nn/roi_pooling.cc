// ROIPooling: the maxima of a fixed number of windows over each region of interest (Girshick, 2015).
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/roi_arguments.h"
#include "kernels/index/device_index.h"
#include "kernels/memory/strided_copy.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/nn/roi_params.h"

namespace hybridnet::ops {
namespace {

const OpRef kScatter{"_roi_scatter"}, kGather{"_roi_gather"};

struct RoiPoolingParams {
  Tuple pooled_size;
  float spatial_scale;
  static void describe(ParamSchema<RoiPoolingParams>& schema) {
    schema.field("pooled_size", &RoiPoolingParams::pooled_size).doc("(height, width) of the output.");
    schema.field("spatial_scale", &RoiPoolingParams::spatial_scale)
        .range(0, 1)
        .doc("Ratio of the size of data to the size of the image whose coordinates rois use.");
    schema.check([](const RoiPoolingParams& p) { check_pooled_size(p.pooled_size); });
  }
};

void infer_roi_pooling(const RoiPoolingParams& p, InferContext& c) {
  c.unify_dtypes({0, 1}, {0});
  c.set_out_dtype(1, DType::kInt64);
  infer_regions(c);
  const Shape out{c.in_shape(1)[0], c.in_shape(0)[1], p.pooled_size[0], p.pooled_size[1]};
  c.set_out_shape(0, out);
  c.set_out_shape(1, out);
  c.set_in_shape(0, Shape{kUnknownDim, c.out_shape(0)[1], kUnknownDim, kUnknownDim});
  c.set_in_shape(1, Shape{c.out_shape(0)[0], 5});
}

int64_t rounded(double x) { return x > -1e9 && x < 1e9 ? static_cast<int64_t>(std::round(x)) : 0; }

// The windows of one region: rows (or columns) first(k) to last(k) of an axis.
template <typename T>
struct RegionAxis {
  int64_t start, size, pooled;
  T bin;
  RegionAxis(double low, double high, int64_t axis_size, int64_t count)
      : start(rounded(low)), size(axis_size), pooled(count) {
    const int64_t length = std::max<int64_t>(rounded(high) - start + 1, 1);
    bin = static_cast<T>(length) / static_cast<T>(pooled);
  }
  int64_t first(int64_t k) const { return inside(static_cast<int64_t>(std::floor(static_cast<T>(k) * bin))); }
  int64_t last(int64_t k) const { return inside(static_cast<int64_t>(std::ceil(static_cast<T>(k + 1) * bin))); }
  int64_t inside(int64_t at) const { return std::clamp<int64_t>(at + start, 0, size); }
};

// The first NaN counts as larger than all other values, like in max pooling.
template <typename T>
bool is_larger(T a, T b) {
  return a > b || (a != a && b == b);
}

// Maximum and its index in data for every window; 0 and -1 if the window is empty.
template <typename T>
void pool_region(const Shape& in, const T* data, const T* roi, double scale, const Shape& out, T* maxima,
                 int64_t* places) {
  const int64_t channels = in[1], height = in[2], width = in[3];
  const RegionAxis<T> x(static_cast<double>(roi[1]) * scale, static_cast<double>(roi[3]) * scale, width, out[3]);
  const RegionAxis<T> y(static_cast<double>(roi[2]) * scale, static_cast<double>(roi[4]) * scale, height, out[2]);
  const int64_t image = image_of(roi[0], in[0]);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t plane = (image * channels + c) * height * width;
    for (int64_t i = 0; i < out[2]; ++i) {
      for (int64_t j = 0; j < out[3]; ++j) {
        int64_t place = -1;
        for (int64_t h = y.first(i); image >= 0 && h < y.last(i); ++h)
          for (int64_t w = x.first(j); w < x.last(j); ++w) {
            const int64_t at = plane + h * width + w;
            if (place < 0 || is_larger(data[at], data[place])) place = at;
          }
        *maxima++ = place < 0 ? T(0) : data[place];
        *places++ = place;
      }
    }
  }
}

void pool_on_device(const RoiPoolingParams& p, const KernelArgs& a) {
  const Shape &in = *a.in[0].shape, &out = *a.out[0].shape;
  const device::RoiArguments r{.data = a.in[0].data,
                               .rois = a.in[1].data,
                               .out = a.out[0].data,
                               .places = a.out[1].as<int64_t>(),
                               .regions = out[0],
                               .batch = in[0],
                               .channels = in[1],
                               .height = in[2],
                               .width = in[3],
                               .pooled_height = out[2],
                               .pooled_width = out[3],
                               .out_channels = out[1],
                               .scale = p.spatial_scale};
  on_device::launch("roi.cuh", "RoiArguments", on_device::with_dtype("roi_pooling", a.in[0].dtype), a.out[0].size(), r);
}

template <typename T>
void run(const RoiPoolingParams& p, const KernelArgs& a) {
  const Shape &in = *a.in[0].shape, &out = *a.out[0].shape;
  if (device::current()) {
    report_device_images("ROIPooling", a.in[1].as<T>(), out[0], in[0], false);
    return pool_on_device(p, a);
  }
  const int64_t each = out.size(1, 4);
  report_images("ROIPooling", a.in[1].as<T>(), out[0], in[0], false);
  parallel_for(out[0], 10.0 * static_cast<double>(each), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      pool_region<T>(in, a.in[0].as<T>(), a.in[1].as<T>() + 5 * r, p.spatial_scale, out, a.out[0].as<T>() + r * each,
                     a.out[1].as<int64_t>() + r * each);
  });
}

template <typename P>
Ref<Kernel> link_typed(const LinkContext& c, void (*narrow)(const P&, const KernelArgs&),
                       void (*wide)(const P&, const KernelArgs&)) {
  return function_kernel<P>(c.in[0].dtype == DType::kFloat64 ? wide : narrow);
}

// ---- gradient: values are added at the indices of the maxima, or read from them

struct RoiScatterParams {
  Tuple shape;
  static void describe(ParamSchema<RoiScatterParams>& schema) {
    schema.field("shape", &RoiScatterParams::shape).doc("Shape of the result.");
  }
};

template <typename T>
void run_scatter(const RoiScatterParams&, const KernelArgs& a) {
  T* out = a.out[0].as<T>();
  if (device::current()) {
    kernels::zero_bytes(out, a.out[0].size() * static_cast<int64_t>(sizeof(T)));
    return kernels::on_device::scatter_add_rows(a.in[0], {1, a.out[0].size(), 1}, a.in[1].as<int64_t>(), a.in[0].size(),
                                                a.out[0]);
  }
  std::fill_n(out, a.out[0].size(), T(0));
  const T* values = a.in[0].as<T>();
  const int64_t* places = a.in[1].as<int64_t>();
  for (int64_t i = 0; i < a.in[0].size(); ++i)
    if (places[i] >= 0 && places[i] < a.out[0].size()) out[places[i]] += values[i];
}

template <typename T>
void run_gather(const NoParams&, const KernelArgs& a) {
  const T* values = a.in[0].as<T>();
  const int64_t* places = a.in[1].as<int64_t>();
  T* out = a.out[0].as<T>();
  if (device::current()) {
    return on_device::launch(
        "roi.cuh", "PlaceArguments", on_device::with_dtype("gather_places", a.in[0].dtype), a.out[0].size(),
        device::PlaceArguments{
            .values = values, .places = places, .out = out, .n = a.out[0].size(), .size = a.in[0].size()});
  }
  for (int64_t i = 0; i < a.out[0].size(); ++i)
    out[i] = places[i] >= 0 && places[i] < a.in[0].size() ? values[places[i]] : T(0);
}

Value scatter(const Value& values, const Value& places, const Shape& shape) {
  return call(kScatter, {values, places}, ParamSchema<RoiScatterParams>::box({.shape = shape}));
}

Values roi_pooling_gradient(const RoiPoolingParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(2);
  return {scatter(g.output_grad(0), g.output(1), g.input_spec(0).shape), Value{}};
}

void register_places(OpRegistry& ops) {
  const Sample sample{.inputs = {{2, 3}, {2, 3}},
                      .low = -1,
                      .high = 5,
                      .dtypes = {DType::kUnknown, DType::kInt64},
                      .integer_valued = true};
  Sample scattered = sample;
  scattered.attrs = {{"shape", "(2, 4)"}};
  ops.declare<RoiScatterParams>("_roi_scatter")
      .internal()
      .doc("Adds each value to the element whose index is in places; -1 is skipped.")
      .input("values", "floating tensor")
      .input("places", "int64, shape of values: indices of elements")
      .output("output", "shape given by the parameter")
      .infer([](const RoiScatterParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_in_dtype(1, DType::kInt64);
        c.set_out_shape(0, p.shape);
      })
      .any_device()
      .link([](const RoiScatterParams&, const LinkContext& c) {
        return link_typed(c, run_scatter<float>, run_scatter<double>);
      })
      .halves_through_float()
      .gradient(
          [](const RoiScatterParams&, const GradientContext& g) -> Values {
            if (!g.output_grad(0)) return Values(2);
            return {call(kGather, {g.output_grad(0), g.input(1)}), Value{}};
          },
          Saves::of({1}))
      .sample(std::move(scattered));
  ops.declare("_roi_gather")
      .internal()
      .doc("The elements of data at the indices in places; 0 for -1.")
      .input("data", "floating tensor")
      .input("places", "int64: indices of elements")
      .output("output", "shape of places")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_in_dtype(1, DType::kInt64);
        c.set_out_shape(0, c.in_shape(1));
      })
      .any_device()
      .link([](const NoParams&, const LinkContext& c) { return link_typed(c, run_gather<float>, run_gather<double>); })
      .halves_through_float()
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            if (!g.output_grad(0)) return Values(2);
            return {scatter(g.output_grad(0), g.input(1), g.input_spec(0).shape), Value{}};
          },
          Saves::of({1}))
      .sample(sample);
}

}  // namespace

void register_roi_pooling(OpRegistry& ops) {
  const auto sample = [](std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs,
                         double high) {
    return Sample{.inputs = std::move(inputs),
                  .attrs = std::move(attrs),
                  .low = 0,
                  .high = high,
                  .check_gradient = false,
                  .note = "regions have no gradient"};
  };
  ops.declare<RoiPoolingParams>("ROIPooling")
      .alias("_npx_roi_pooling")
      .doc(
          "Maxima of pooled_size windows over each region of interest. Corners are scaled and rounded; a region "
          "includes both of them and at least one pixel. Empty windows, and regions with an invalid image number, give "
          "0.")
      .input("data", "(batch, channels, height, width)")
      .input("rois", "(regions, 5): number of the image, then left, top, right and bottom; no gradient")
      .output("output", "(regions, channels, pooled_size)")
      .output("maxidx", "index in data of each maximum; -1 for an empty window")
      .visible_outputs(1)
      .infer(infer_roi_pooling)
      .any_device()
      .link([](const RoiPoolingParams&, const LinkContext& c) { return link_typed(c, run<float>, run<double>); })
      .halves_through_float()
      .gradient(roi_pooling_gradient, Saves::of({}, {1}))
      .cost(
          [](const RoiPoolingParams&, auto in, auto out) { return out[0].shape.size() * 4 + in[0].shape.size() + 300; })
      .amp(AmpType::kWidest)
      .sample(sample({{2, 2, 6, 5}, {3, 5}}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}}, 2.9))
      .sample(sample({{3, 1, 4, 4}, {2, 5}}, {{"pooled_size", "(3, 2)"}, {"spatial_scale", "0.5"}}, 7.0))
      .sample(sample({{1, 2, 4, 4}, {0, 5}}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1.0"}}, 1.0));
  register_places(ops);
}

}  // namespace hybridnet::ops
