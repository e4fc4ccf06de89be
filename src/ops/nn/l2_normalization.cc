// L2Normalization: divides by the Euclidean norm over some axes.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/reduce/row_sums.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

enum class NormMode : int32_t { kInstance, kChannel, kSpatial };

struct L2NormalizationParams {
  double eps;
  NormMode mode;
  static void describe(ParamSchema<L2NormalizationParams>& schema) {
    schema.field("eps", &L2NormalizationParams::eps)
        .default_value(1e-10)
        .at_least(0)
        .doc("Added to the sum of squares.");
    schema.field("mode", &L2NormalizationParams::mode)
        .default_value("instance")
        .choice("instance", NormMode::kInstance)
        .choice("channel", NormMode::kChannel)
        .choice("spatial", NormMode::kSpatial)
        .doc("Axes of the norm. instance: all except the first; channel: the second; spatial: the third to the last.");
  }
};

// The shape of the norms for broadcasting against the data.
Shape kept_shape(const L2NormalizationParams& p, Shape shape) {
  switch (p.mode) {
    case NormMode::kInstance:
      for (int i = 1; i < shape.ndim(); ++i) shape[i] = 1;
      break;
    case NormMode::kChannel:
      shape[1] = 1;
      break;
    case NormMode::kSpatial:
      for (int i = 2; i < shape.ndim(); ++i) shape[i] = 1;
      break;
  }
  return shape;
}

Tuple norm_axes(const L2NormalizationParams& p, int ndim) {
  if (p.mode == NormMode::kChannel) return Tuple{1};
  Tuple axes = Tuple::scalar();
  for (int i = p.mode == NormMode::kInstance ? 1 : 2; i < ndim; ++i) axes.push_back(i);
  return axes;
}

void infer_l2_normalization(const L2NormalizationParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  const int at_least = p.mode == NormMode::kInstance ? 1 : 3;
  if (data.ndim() < at_least) {
    throw ShapeError({.input = "data",
                      .expected = "at least " + std::to_string(at_least) + " axes",
                      .given = "shape " + data.str(),
                      .because = p.mode == NormMode::kInstance ? "" : "mode is channel or spatial"});
  }
  if (p.mode == NormMode::kChannel)
    c.set_out_shape(1, kept_shape(p, data));
  else
    c.set_out_shape(1, Shape(data.dims().first(p.mode == NormMode::kInstance ? 1 : 2)));
}

// Rows of contiguous elements, one norm each.
template <typename T>
void normalize_rows(int64_t rows, int64_t length, double eps, const T* in, T* out, T* norms) {
  parallel_for(rows, 1.2 * static_cast<double>(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = in + row * length;
      T* y = out + row * length;
      const auto square = [x](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); };
      const double norm = std::sqrt(kernels::sum_of(length, square) + eps);
      const T factor = static_cast<T>(1 / norm);
      for (int64_t i = 0; i < length; ++i) y[i] = x[i] * factor;
      norms[row] = static_cast<T>(norm);
    }
  });
}

// (batch, channels, inner), one norm for each (batch, inner).
template <typename T>
void normalize_channels(int64_t batch, int64_t channels, int64_t inner, double eps, const T* in, T* out, T* norms) {
  parallel_for(batch, 1.2 * static_cast<double>(channels * inner), [&](int64_t begin, int64_t end) {
    Temporary<double> sums(static_cast<size_t>(inner));
    Temporary<T> factors(static_cast<size_t>(inner));
    for (int64_t n = begin; n < end; ++n) {
      const T* x = in + n * channels * inner;
      T* y = out + n * channels * inner;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < inner; ++i)
          sums[static_cast<size_t>(i)] += static_cast<double>(x[c * inner + i]) * static_cast<double>(x[c * inner + i]);
      for (int64_t i = 0; i < inner; ++i) {
        const double norm = std::sqrt(sums[static_cast<size_t>(i)] + eps);
        norms[n * inner + i] = static_cast<T>(norm);
        factors[static_cast<size_t>(i)] = static_cast<T>(1 / norm);
      }
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < inner; ++i) y[c * inner + i] = x[c * inner + i] * factors[static_cast<size_t>(i)];
    }
  });
}

template <typename T>
void run(const L2NormalizationParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const T* in = a.in[0].as<T>();
  T *out = a.out[0].as<T>(), *norms = a.out[1].as<T>();
  if (p.mode == NormMode::kChannel) return normalize_channels(s[0], s[1], s.size(2, s.ndim()), p.eps, in, out, norms);
  const int first = p.mode == NormMode::kInstance ? 1 : 2;
  normalize_rows(s.size(0, first), s.size(first, s.ndim()), p.eps, in, out, norms);
}

void run_on_device(const L2NormalizationParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const DType dtype = a.in[0].dtype;
  device::GroupArguments g{.x = a.in[0].data, .out = a.out[0].data, .first = a.out[1].data, .eps = p.eps};
  if (p.mode == NormMode::kChannel) {
    g.rows = s[0], g.groups = s[1], g.size = s.size(2, s.ndim());
    return on_device::launch("groups.cuh", "GroupArguments", on_device::with_dtype("l2_channels", dtype),
                             g.rows * g.size, g);
  }
  const int first = p.mode == NormMode::kInstance ? 1 : 2;
  g.rows = s.size(0, first), g.size = s.size(first, s.ndim());
  on_device::launch_rows("groups.cuh", "GroupArguments", on_device::with_dtype("l2_rows", dtype), g.rows, g);
}

void run_l2_normalization(const L2NormalizationParams& p, const KernelArgs& a) {
  if (device::current()) return run_on_device(p, a);
  a.in[0].dtype == DType::kFloat64 ? run<double>(p, a) : run<float>(p, a);
}

// y = x / norm: dx = (dy - y sum(dy y)) / norm + y dnorm
Values l2_normalization_gradient(const L2NormalizationParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  if (shape.size() == 0) return {};
  const Shape kept = kept_shape(p, shape);
  const Value y = g.output(0), norm = reshape(g.output(1), kept);
  const Tuple axes = norm_axes(p, shape.ndim());
  Value dx;
  if (const Value dy = g.output_grad(0)) {
    const Value product = dy * y;
    dx = (dy - y * (axes.ndim() > 0 ? sum(product, axes, true) : product)) / norm;
  }
  if (const Value dnorm = g.output_grad(1)) dx = dx + y * reshape(dnorm, kept);
  return {dx};
}

}  // namespace

void register_l2_normalization(OpRegistry& ops) {
  ops.declare<L2NormalizationParams>("L2Normalization")
      .doc("Divides by the Euclidean norm over the axes of mode: data / sqrt(sum(data^2) + eps).")
      .input("data", "(batch, ...); (batch, channels, ...) for modes channel and spatial")
      .names_its_input()
      .output("output", "shape and dtype of data")
      .output("norm", "the norms: (batch,), (batch, 1, ...) or (batch, channels)")
      .visible_outputs(1)
      .infer(infer_l2_normalization)
      .any_device()
      .cpu(run_l2_normalization, kFloating)
      .halves_through_float()
      .gradient(l2_normalization_gradient, Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"mode", "channel"}, {"eps", "0.001"}})
      .sample({{2, 3, 2, 2}}, {{"mode", "spatial"}})
      .sample({{0, 3, 2}});
}

}  // namespace hybridnet::ops
