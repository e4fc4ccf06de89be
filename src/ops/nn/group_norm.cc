// GroupNorm and InstanceNorm: both normalize rows of (batch, group) and scale each group; an instance norm has one
// channel per group.
//   Wu, He: Group normalization, ECCV 2018.   Ulyanov, Vedaldi, Lempitsky: Instance normalization, 2016.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/reduce/row_sums.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_backward_GroupNorm"}, kSqrt{"sqrt"};

struct GroupNormParams {
  int64_t num_groups;
  double eps;
  bool output_mean_var;
  static void describe(ParamSchema<GroupNormParams>& schema) {
    schema.field("num_groups", &GroupNormParams::num_groups)
        .default_value(1)
        .at_least(1)
        .doc("Number of groups of channels.");
    schema.field("eps", &GroupNormParams::eps).default_value(1e-5).at_least(0).doc("Added to the variance.");
    schema.field("output_mean_var", &GroupNormParams::output_mean_var)
        .default_value(false)
        .doc("Whether mean and std are outputs, too.");
  }
};

struct InstanceNormParams {
  double eps;
  static void describe(ParamSchema<InstanceNormParams>& schema) {
    schema.field("eps", &InstanceNormParams::eps).default_value(1e-3).at_least(0).doc("Added to the variance.");
  }
};

// ---- shapes
void require_axes(const InferContext& c, int input, int at_least) {
  const Shape& shape = c.in_shape(input);
  if (!shape.rank_known() || shape.ndim() >= at_least) return;
  throw ShapeError({.input = c.input_name(input),
                    .expected = "at least " + std::to_string(at_least) + " axes: batch, channels, then space",
                    .given = "shape " + shape.str()});
}

void infer_groups(InferContext& c, int64_t groups) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  c.set_in_shape(1, Shape{groups});
  c.set_in_shape(2, Shape{groups});
  const Shape& data = c.in_shape(0);
  const Shape moments{data.rank_known() ? data[0] : kUnknownDim, groups};
  c.set_out_shape(1, moments);
  c.set_out_shape(2, moments);
}

void infer_group_norm(const GroupNormParams& p, InferContext& c) {
  require_axes(c, 0, 2);
  const Shape& data = c.in_shape(0);
  if (data.rank_known() && data[1] != kUnknownDim && data[1] % p.num_groups != 0) {
    throw ShapeError({.input = "data",
                      .expected = "a number of channels that num_groups=" + std::to_string(p.num_groups) + " divides",
                      .given = "shape " + data.str(),
                      .fix = "choose num_groups among the divisors of " + std::to_string(data[1])});
  }
  infer_groups(c, p.num_groups);
}

void infer_instance_norm(const InstanceNormParams&, InferContext& c) {
  require_axes(c, 0, 3);
  int64_t channels = c.in_shape(0).rank_known() ? c.in_shape(0)[1] : kUnknownDim;
  if (channels == kUnknownDim && c.in_shape(1).ndim() == 1) channels = c.in_shape(1)[0];
  infer_groups(c, channels);
}

struct Groups {
  int64_t batch, groups, size;  // size: elements of one (batch, group)
  Groups(const Shape& data, int64_t group_count)
      : batch(data[0]), groups(group_count), size(data.size() == 0 ? 0 : data.size() / (batch * groups)) {}
  int64_t rows() const { return batch * groups; }
  double row_ns() const { return 1.2 * static_cast<double>(size); }
};

// ---- forward
template <typename T>
void normalize(const Groups& s, double eps, bool variance, const KernelArgs& a) {
  const T *in = a.in[0].as<T>(), *gamma = a.in[1].as<T>(), *beta = a.in[2].as<T>();
  T *out = a.out[0].as<T>(), *mean_out = a.out[1].as<T>(), *spread_out = a.out[2].as<T>();
  parallel_for(s.rows(), s.row_ns(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = in + row * s.size;
      const double mean = kernels::sum_of(s.size, [x](int64_t i) { return x[i]; }) / static_cast<double>(s.size);
      const auto square = [x, mean](int64_t i) {
        const double d = static_cast<double>(x[i]) - mean;
        return d * d;
      };
      const double var = kernels::sum_of(s.size, square) / static_cast<double>(s.size), std = std::sqrt(var + eps);
      const int64_t g = row % s.groups;
      const T factor = static_cast<T>(static_cast<double>(gamma[g]) / std), shift = beta[g],
              center = static_cast<T>(mean);
      T* y = out + row * s.size;
      for (int64_t i = 0; i < s.size; ++i) y[i] = (x[i] - center) * factor + shift;
      if (mean_out) mean_out[row] = center;
      if (spread_out) spread_out[row] = static_cast<T>(variance ? var : std);
    }
  });
}

void normalize_on_device(const Groups& s, double eps, bool variance, const KernelArgs& a) {
  const device::GroupArguments g{.x = a.in[0].data,
                                 .gamma = a.in[1].data,
                                 .beta = a.in[2].data,
                                 .out = a.out[0].data,
                                 .first = a.out[1].data,
                                 .second = a.out[2].data,
                                 .rows = s.rows(),
                                 .groups = s.groups,
                                 .size = s.size,
                                 .variance = variance,
                                 .eps = eps};
  on_device::launch_rows("groups.cuh", "GroupArguments", on_device::with_dtype("normalize_groups", a.in[0].dtype),
                         s.rows(), g);
}

void run_group_norm(const GroupNormParams& p, const KernelArgs& a) {
  const Groups s(*a.in[0].shape, p.num_groups);
  if (device::current()) return normalize_on_device(s, p.eps, false, a);
  a.in[0].dtype == DType::kFloat64 ? normalize<double>(s, p.eps, false, a) : normalize<float>(s, p.eps, false, a);
}
void run_instance_norm(const InstanceNormParams& p, const KernelArgs& a) {
  const Groups s(*a.in[0].shape, (*a.in[0].shape)[1]);
  if (device::current()) return normalize_on_device(s, p.eps, true, a);
  a.in[0].dtype == DType::kFloat64 ? normalize<double>(s, p.eps, true, a) : normalize<float>(s, p.eps, true, a);
}

// ---- backward: inputs dy, data, gamma, mean, std; outputs with the shapes of data, gamma, gamma
template <typename T>
void differentiate(const Groups& s, const KernelArgs& a) {
  const T *dy = a.in[0].as<T>(), *in = a.in[1].as<T>(), *gamma = a.in[2].as<T>(), *mean = a.in[3].as<T>(),
          *std = a.in[4].as<T>();
  T *dx = a.out[0].as<T>(), *dgamma = a.out[1].as<T>(), *dbeta = a.out[2].as<T>();
  Temporary<double> sums(static_cast<size_t>(2 * s.rows()));
  parallel_for(s.rows(), s.row_ns(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T *x = in + row * s.size, *d = dy + row * s.size, center = mean[row];
      const double inverse = 1 / static_cast<double>(std[row]), count = static_cast<double>(s.size);
      const double sum_d = kernels::sum_of(s.size, [d](int64_t i) { return d[i]; });
      const auto product = [d, x, center](int64_t i) { return static_cast<double>(d[i]) * (x[i] - center); };
      const double sum_dx = kernels::sum_of(s.size, product) * inverse;
      sums[static_cast<size_t>(2 * row)] = sum_d;
      sums[static_cast<size_t>(2 * row + 1)] = sum_dx;
      const T factor = static_cast<T>(static_cast<double>(gamma[row % s.groups]) * inverse);
      const T shift = static_cast<T>(sum_d / count), slope = static_cast<T>(sum_dx / count * inverse);
      T* to = dx + row * s.size;
      for (int64_t i = 0; i < s.size; ++i) to[i] = factor * (d[i] - shift - (x[i] - center) * slope);
    }
  });
  for (int64_t g = 0; g < s.groups; ++g) {
    double of_gamma = 0, of_beta = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      const size_t row = static_cast<size_t>(n * s.groups + g);
      of_beta += sums[2 * row];
      of_gamma += sums[2 * row + 1];
    }
    dgamma[g] = static_cast<T>(of_gamma);
    dbeta[g] = static_cast<T>(of_beta);
  }
}

void differentiate_on_device(const Groups& s, const KernelArgs& a) {
  const OwnedBlock sums(std::max<int64_t>(s.rows(), 1) * 2 * 8, device::current()->device());
  const device::GroupArguments g{.x = a.in[1].data,
                                 .gamma = a.in[2].data,
                                 .mean = a.in[3].data,
                                 .spread = a.in[4].data,
                                 .dy = a.in[0].data,
                                 .out = a.out[0].data,
                                 .first = a.out[1].data,
                                 .second = a.out[2].data,
                                 .sums = static_cast<double*>(sums.data()),
                                 .rows = s.rows(),
                                 .groups = s.groups,
                                 .size = s.size};
  const DType dtype = a.in[0].dtype;
  on_device::launch_rows("groups.cuh", "GroupArguments", on_device::with_dtype("differentiate_groups", dtype), g.rows,
                         g);
  on_device::launch("groups.cuh", "GroupArguments", on_device::with_dtype("join_groups", dtype), g.groups, g);
}

void run_backward(const NoParams&, const KernelArgs& a) {
  const Groups s(*a.in[1].shape, (*a.in[2].shape)[0]);
  if (device::current()) return differentiate_on_device(s, a);
  a.in[0].dtype == DType::kFloat64 ? differentiate<double>(s, a) : differentiate<float>(s, a);
}

void infer_backward(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  c.set_out_shape(0, c.in_shape(1));
  c.set_out_shape(1, c.in_shape(2));
  c.set_out_shape(2, c.in_shape(2));
}

// ---- gradients
// Values viewed as (batch, group, element of the group).
struct View {
  Groups s;
  Value rows(const Value& v) const { return reshape(v, Shape{s.batch, s.groups, s.size}); }
  Value moments(const Value& v) const { return reshape(v, Shape{s.batch, s.groups, 1}); }
  Value groups(const Value& v) const { return reshape(v, Shape{1, s.groups, 1}); }
  Value row_sum(const Value& v) const { return sum(v, Tuple{2}, true); }
  Value row_mean(const Value& v) const { return row_sum(v) / static_cast<double>(s.size); }
};

// `spread`: std of GroupNorm or, with `variance`, var of InstanceNorm.
Values norm_gradient(const GradientContext& g, int64_t groups, double eps, bool variance) {
  const Shape& shape = g.input_spec(0).shape;
  if (shape.size() == 0) return {};
  const Value x = g.input(0), mean = g.output(1), spread = g.output(2);
  const Value std = variance ? call(kSqrt, {spread + eps}) : spread;
  Values grads(3);
  if (g.output_grad(0)) grads = call_all(kBackward, {g.output_grad(0), x, g.input(1), mean, std});
  const View view{Groups(shape, groups)};
  const double count = static_cast<double>(view.s.size);
  Value rest;
  if (g.output_grad(1))
    rest = broadcast_to(view.moments(g.output_grad(1)) / count, Shape{view.s.batch, groups, view.s.size});
  if (const Value d = g.output_grad(2)) {
    const Value slope = variance ? view.moments(d) * (2 / count) : view.moments(d) / (view.moments(std) * count);
    rest = rest + (view.rows(x) - view.moments(mean)) * slope;
  }
  if (rest) grads[0] = grads[0] + reshape(rest, shape);
  return grads;
}

// With h = (x - mean) / std, w = gamma dy and P(u) = (u - mean(u) - h mean(u h)) / std, the helper computes P(w),
// sum(dy h), sum(dy). P is symmetric, so the products with u, v, z are sum(w P(u)) + sum(v dy h) + sum(z dy).
Values backward_gradient(const NoParams&, const GradientContext& g) {
  const Shape shape = g.input_spec(1).shape;
  if (shape.size() == 0) return {};
  const View view{Groups(shape, g.input_spec(2).shape[0])};
  const Value dy = view.rows(g.input(0)), gamma = view.groups(g.input(2)), std = view.moments(g.input(4));
  const Value inverse = 1.0 / std, h = (view.rows(g.input(1)) - view.moments(g.input(3))) * inverse;
  Value of_dy, of_gamma, of_h, of_inverse;
  if (g.output_grad(0)) {
    const Value u = view.rows(g.output_grad(0)), w = dy * gamma, uh = view.row_mean(u * h);
    const Value projected = (u - view.row_mean(u) - h * uh) * inverse;
    of_dy = gamma * projected;
    of_gamma = sum(dy * projected, Tuple{0, 2}, false);
    of_h = -((u * view.row_mean(w * h) + w * uh) * inverse);
    of_inverse = view.row_sum(w * projected) * std;
  }
  if (g.output_grad(1)) {
    const Value v = view.groups(g.output_grad(1));
    of_dy = of_dy + v * h;
    of_h = of_h + v * dy;
  }
  if (g.output_grad(2))
    of_dy = of_dy + broadcast_to(view.groups(g.output_grad(2)), Shape{view.s.batch, view.s.groups, view.s.size});
  Values grads(5);
  grads[0] = reshape(of_dy, shape);
  grads[2] = of_gamma;
  if (of_h) {
    const Shape& moments = g.input_spec(3).shape;
    grads[1] = reshape(of_h * inverse, shape);
    grads[3] = reshape(-(view.row_sum(of_h) * inverse), moments);
    of_inverse = of_inverse + view.row_sum(of_h * h) * std;
    grads[4] = reshape(-(of_inverse * inverse * inverse), moments);
  }
  return grads;
}

}  // namespace

void register_group_norm(OpRegistry& ops) {
  ops.declare<GroupNormParams>("GroupNorm")
      .doc("Normalizes groups of channels of each example to mean 0 and variance 1, then scales and shifts each group.")
      .input("data", "(batch, channels, ...)")
      .input("gamma", "(num_groups,): scale")
      .input("beta", "(num_groups,): shift")
      .output("output", "shape and dtype of data")
      .output("mean", "(batch, num_groups)")
      .output("std", "(batch, num_groups): sqrt(variance + eps)")
      .num_visible_outputs([](const GroupNormParams& p) { return p.output_mean_var ? 3 : 1; })
      .infer(infer_group_norm)
      .any_device()
      .cpu(run_group_norm, kFloating)
      .halves_through_float()
      .skips_unwanted_outputs()
      .gradient([](const GroupNormParams& p,
                   const GradientContext& g) { return norm_gradient(g, p.num_groups, p.eps, false); },
                Saves::of({0, 1}, {1, 2}))
      .amp(AmpType::kFloat)
      .sample({{2, 4, 3}, {2}, {2}}, {{"num_groups", "2"}})
      .sample({{2, 6, 2, 2}, {3}, {3}}, {{"num_groups", "3"}, {"eps", "0.01"}, {"output_mean_var", "True"}})
      .sample({{0, 4, 3}, {2}, {2}}, {{"num_groups", "2"}});
  ops.declare<InstanceNormParams>("InstanceNorm")
      .doc("Normalizes each channel of each example to mean 0 and variance 1, then scales and shifts each channel.")
      .input("data", "(batch, channels, ...)")
      .input("gamma", "(channels,): scale")
      .input("beta", "(channels,): shift")
      .output("output", "shape and dtype of data")
      .output("mean", "(batch, channels)")
      .output("var", "(batch, channels)")
      .visible_outputs(1)
      .infer(infer_instance_norm)
      .any_device()
      .cpu(run_instance_norm, kFloating)
      .halves_through_float()
      .skips_unwanted_outputs()
      .gradient([](const InstanceNormParams& p,
                   const GradientContext& g) { return norm_gradient(g, g.input_spec(0).shape[1], p.eps, true); },
                Saves::of({0, 1}, {1, 2}))
      .amp(AmpType::kFloat)
      .sample({{2, 3, 4}, {3}, {3}})
      .sample({{2, 2, 2, 3}, {2}, {2}}, {{"eps", "0.1"}});
  Sample backward;
  backward.inputs = {{2, 4, 3}, {2, 4, 3}, {2}, {2, 2}, {2, 2}};
  backward.low = 0.5;
  ops.declare("_backward_GroupNorm")
      .internal()
      .doc("Input gradients of GroupNorm and InstanceNorm, given the moments of their data.")
      .input("grad", "output gradient")
      .input("data", "(batch, channels, ...)")
      .input("gamma", "(groups,)")
      .input("mean", "(batch, groups)")
      .input("std", "(batch, groups)")
      .output("data_grad", "shape of data")
      .output("gamma_grad", "shape of gamma")
      .output("beta_grad", "shape of gamma")
      .infer(infer_backward)
      .any_device()
      .cpu(run_backward, kFloating)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .sample(backward);
}

}  // namespace hybridnet::ops
