// BatchNorm in its variants, and their gradient.
#include "kernels/norm/batch_norm.h"

#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/device/batch_norm_arguments.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/float_kernel.h"
#include "ops/nn/image_layout.h"

namespace hybridnet::ops {
namespace {

using kernels::ChannelGradient;
using kernels::ChannelShape;

const OpRef kBackward{"_batch_norm_backward"};

struct BatchNormParams {
  double eps = 1e-3;
  float momentum = 0.9f;
  bool fix_gamma = true, use_global_stats = false, output_mean_var = false, cudnn_off = false;
  int32_t axis = 1;
  std::optional<float> min_calib_range, max_calib_range;
  static void describe(ParamSchema<BatchNormParams>& schema);
};

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M BatchNormParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("eps", &BatchNormParams::eps).default_value(1e-3f).at_least(0.0).doc("Added to the variance.");
  field("momentum", &BatchNormParams::momentum).default_value(0.9f).doc("Factor of the old moving statistics.");
  field("fix_gamma", &BatchNormParams::fix_gamma)
      .default_value(true)
      .doc("Whether gamma is treated as 1 and has no gradient.");
  field("use_global_stats", &BatchNormParams::use_global_stats)
      .default_value(false)
      .doc("Whether the moving statistics are used in training, too.");
  field("output_mean_var", &BatchNormParams::output_mean_var)
      .default_value(false)
      .doc("Whether mean and var are outputs, too.");
}

void BatchNormParams::describe(ParamSchema<BatchNormParams>& schema) {
  describe_fields(schema);
  schema.field("axis", &BatchNormParams::axis).default_value(1).doc("Axis of the channels.");
  schema.field("cudnn_off", &BatchNormParams::cudnn_off).default_value(false).hidden();
  schema.field("min_calib_range", &BatchNormParams::min_calib_range).none_by_default().hidden();
  schema.field("max_calib_range", &BatchNormParams::max_calib_range).none_by_default().hidden();
}

// Statistics over all devices. On one device it is BatchNorm, except that the var output is the variance.
struct SyncBatchNormParams : BatchNormParams {
  int32_t ndev = 1;
  std::string key;
  static void describe(ParamSchema<SyncBatchNormParams>& schema) {
    describe_fields(schema);
    schema.field("ndev", &SyncBatchNormParams::ndev).default_value(1).hidden();
    schema.field("key", &SyncBatchNormParams::key).doc("Name of the group of layers that share statistics.");
  }
};

// ---- shapes

// Statistics and parameters of 16-bit data are float32.
DType statistics_dtype(DType data) { return is_half(data) ? DType::kFloat32 : data; }

void infer_batch_norm(const BatchNormParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.require_dtype(0, kFloating);
  if (const DType d = c.in_dtype(0); d != DType::kUnknown) {
    for (int i = 1; i < 5; ++i) c.set_in_dtype(i, statistics_dtype(d));
    for (int i = 1; i < 5; ++i) c.set_out_dtype(i, statistics_dtype(d));
  }
  c.set_in_shape(0, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(0));
  const Shape& data = c.in_shape(0);
  for (int i = 1; i < 5; ++i) c.set_in_shape(i, Shape::unknown(1));
  if (!data.rank_known()) return;
  const int axis = normalize_axis(p.axis, data.ndim());
  Shape learned = Shape::unknown(data.ndim());
  for (int i = 1; i < 5; ++i)
    if (c.in_shape(i)[0] != kUnknownDim) learned[axis] = c.in_shape(i)[0];
  if (data[axis] != kUnknownDim) learned[axis] = data[axis];
  c.set_in_shape(0, learned);
  c.set_out_shape(0, learned);
  for (int i = 1; i < 5; ++i) c.set_in_shape(i, Shape{learned[axis]});
  for (int i = 1; i < 5; ++i) c.set_out_shape(i, Shape{learned[axis]});
}

ChannelShape channel_shape(const Shape& data, int axis_param, const LinkContext& c) {
  const int axis = normalize_axis(axis_param, data.ndim());
  const bool last = linked_channels_last(c);
  if (last && axis != 1)
    throw UnsupportedError({.message = "channels-last memory was chosen for a node whose channels are not axis 1"});
  ChannelShape s{data.size(0, axis), data[axis], data.size(axis + 1, data.ndim())};
  if (last) s = {s.outer * s.inner, s.channels, 1};
  return s;
}

// Runs a kernel of batch_norm.cuh over the channels.
template <typename T>
void launch_channels(const char* function, const device::BatchNormArguments& a) {
  on_device::launch("batch_norm.cuh", "BatchNormArguments", on_device::with_dtype(function, dtype_of<T>::value),
                    a.channels, a);
}

// ---- forward

enum class VarOutput { kInverseDeviation, kVariance };

template <typename T>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const BatchNormParams& p, const ChannelShape& s, bool batch_statistics, bool relu, VarOutput var)
      : p_(p), s_(s), batch_(batch_statistics), relu_(relu), var_(var) {}

  int64_t workspace_bytes() const override {
    return per_channel_bytes() * kArrays + (batch_ ? kernels::channel_sums_workspace(s_, sizeof(T)) : 0);
  }

  void run(const KernelArgs& a) override {
    T* mean = channels(a, 0);
    T* variance = channels(a, 1);
    T* scale = channels(a, 2);
    if (batch_) {
      kernels::channel_mean_variance(s_, static_cast<const T*>(a.in[0].as<T>()), mean, variance, channels(a, kArrays));
    }
    const bool on_device = device::current();
    on_device ? launch_statistics(a, mean, variance, scale) : compute_statistics(a, mean, variance, scale);
    kernels::channel_normalize(s_, static_cast<const T*>(a.in[0].as<T>()), mean, scale, a.in[2].as<T>(), relu_,
                               a.out[0].as<T>());
    if (on_device) return;
    move(a, 3, mean);
    move(a, 4, variance);
  }

 private:
  static constexpr int kArrays = 3;
  int64_t per_channel_bytes() const { return (s_.channels * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64; }
  T* channels(const KernelArgs& a, int i) const {
    return reinterpret_cast<T*>(static_cast<char*>(a.workspace) + per_channel_bytes() * i);
  }
  void compute_statistics(const KernelArgs& a, T* mean, T* variance, T* scale) const {
    if (!batch_) {
      std::copy_n(a.in[3].as<T>(), s_.channels, mean);
      std::copy_n(a.in[4].as<T>(), s_.channels, variance);
    }
    const T* gamma = a.in[1].as<T>();
    T *mean_out = a.out[1].as<T>(), *var_out = a.out[2].as<T>();
    for (int64_t c = 0; c < s_.channels; ++c) {
      const T inverse = T(1) / std::sqrt(variance[c] + static_cast<T>(p_.eps));
      scale[c] = p_.fix_gamma ? inverse : gamma[c] * inverse;
      if (mean_out) mean_out[c] = mean[c];
      if (var_out) var_out[c] = var_ == VarOutput::kVariance ? variance[c] : inverse;
    }
  }
  // The same on a device, with the moving statistics.
  void launch_statistics(const KernelArgs& a, T* mean, T* variance, T* scale) const {
    device::BatchNormArguments b{};
    b.gamma = a.in[1].data, b.old_mean = a.in[3].data, b.old_var = a.in[4].data;
    b.mean = mean, b.variance = variance, b.scale = scale;
    b.mean_out = a.out[1].data, b.var_out = a.out[2].data, b.new_mean = a.out[3].data, b.new_var = a.out[4].data;
    b.channels = s_.channels;
    b.eps = p_.eps, b.keep = keep();
    b.unit_gamma = p_.fix_gamma, b.batch_statistics = batch_, b.var_is_variance = var_ == VarOutput::kVariance;
    launch_channels<T>("batch_norm_statistics", b);
  }
  T keep() const { return batch_ ? static_cast<T>(p_.momentum) : T(1); }
  // Output i may alias input i.
  void move(const KernelArgs& a, size_t i, const T* now) const {
    T* out = a.out[i].as<T>();
    if (!out) return;
    const T* before = a.in[i].as<T>();
    const T keep = this->keep();
    for (int64_t c = 0; c < s_.channels; ++c) out[c] = keep * before[c] + (T(1) - keep) * now[c];
  }

  BatchNormParams p_;
  ChannelShape s_;
  bool batch_, relu_;
  VarOutput var_;
};

template <bool kRelu, VarOutput kVar>
Ref<Kernel> link_forward(const BatchNormParams& p, const LinkContext& c) {
  const ChannelShape s = channel_shape(c.in[0].shape, p.axis, c);
  const bool batch = c.train && !p.use_global_stats;
  return make_float_kernel<ForwardKernel>(c.in[0].dtype, p, s, batch, kRelu, kVar);
}

// ---- the output recomputed from the statistics of the forward pass

struct ApplyParams {
  int32_t axis = 1;
  bool fix_gamma = false, relu = false;
  static void describe(ParamSchema<ApplyParams>& schema) {
    schema.field("axis", &ApplyParams::axis).default_value(1).doc("Axis of the channels.");
    schema.field("fix_gamma", &ApplyParams::fix_gamma).default_value(false).doc("Whether gamma is treated as 1.");
    schema.field("relu", &ApplyParams::relu).default_value(false).doc("Whether max(., 0) is applied.");
  }
};

template <typename T>
void compute_scale(int64_t channels, const T* gamma, const T* inverse, bool unit_gamma, T* scale) {
  if (device::current()) {
    device::BatchNormArguments b{};
    b.gamma = gamma, b.inverse = inverse, b.scale = scale;
    b.channels = channels;
    b.unit_gamma = unit_gamma;
    return launch_channels<T>("batch_norm_scale", b);
  }
  for (int64_t c = 0; c < channels; ++c) scale[c] = unit_gamma ? inverse[c] : gamma[c] * inverse[c];
}

template <typename T>
class ApplyKernel final : public Kernel {
 public:
  explicit ApplyKernel(const ChannelShape& s) : s_(s) {}
  int64_t workspace_bytes() const override { return s_.channels * static_cast<int64_t>(sizeof(T)); }
  void run(const KernelArgs& a) override {
    const auto& p = *static_cast<const ApplyParams*>(a.params);
    const T *gamma = a.in[1].as<T>(), *inverse = a.in[4].as<T>();
    T* scale = static_cast<T*>(a.workspace);
    compute_scale(s_.channels, gamma, inverse, p.fix_gamma, scale);
    kernels::channel_normalize(s_, static_cast<const T*>(a.in[0].as<T>()), static_cast<const T*>(a.in[3].as<T>()),
                               static_cast<const T*>(scale), static_cast<const T*>(a.in[2].as<T>()), p.relu,
                               a.out[0].as<T>());
  }

 private:
  ChannelShape s_;
};

Ref<Kernel> link_apply(const ApplyParams& p, const LinkContext& c) {
  const ChannelShape s = channel_shape(c.in[0].shape, p.axis, c);
  return make_float_kernel<ApplyKernel>(c.in[0].dtype, s);
}

void infer_apply(const ApplyParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  if (const DType d = c.in_dtype(0); d != DType::kUnknown)
    for (int i = 1; i < 5; ++i) c.set_in_dtype(i, statistics_dtype(d));
  c.set_in_shape(0, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(0));
  if (!c.in_shape(0).rank_known()) return;
  const Shape channels{c.in_shape(0)[normalize_axis(p.axis, c.in_shape(0).ndim())]};
  for (int i = 1; i < 5; ++i) c.set_in_shape(i, channels);
}

// ---- gradient: (dy, x, gamma, beta, mean, inverse deviation) -> dx, dgamma, dbeta

struct BackwardParams {
  double eps = 1e-3;
  int32_t axis = 1;
  bool batch_statistics = true;  // mean and deviation are computed from x, so they contribute to its gradient
  bool unit_gamma = false;       // gamma is treated as 1
  bool relu = false;             // the forward pass ended with max(., 0)
  static void describe(ParamSchema<BackwardParams>& schema) {
    schema.field("eps", &BackwardParams::eps).default_value(1e-3).doc("Added to the variance.");
    schema.field("axis", &BackwardParams::axis).default_value(1).doc("Axis of the channels.");
    schema.field("batch_statistics", &BackwardParams::batch_statistics)
        .default_value(true)
        .doc("Whether the statistics are those of x.");
    schema.field("unit_gamma", &BackwardParams::unit_gamma).default_value(false).doc("Whether gamma is treated as 1.");
    schema.field("relu", &BackwardParams::relu)
        .default_value(false)
        .doc("Whether the forward pass ended with max(., 0).");
  }
};

template <typename T>
class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const BackwardParams& p, const ChannelShape& s) : p_(p), s_(s) {}
  int64_t workspace_bytes() const override {
    return per_channel_bytes() * kArrays + kernels::channel_sums_workspace(s_, sizeof(T));
  }

  void run(const KernelArgs& a) override {
    const T *gamma = a.in[2].as<T>(), *mean = a.in[4].as<T>(), *inverse = a.in[5].as<T>();
    T *scale = channels(a, 0), *offset = channels(a, 1), *slope = channels(a, 2), *dgamma = channels(a, 3),
      *dbeta = channels(a, 4);
    compute_scale(s_.channels, gamma, inverse, p_.unit_gamma, scale);
    const ChannelGradient<T> g{a.in[1].as<T>(), a.in[0].as<T>(), mean, scale, a.in[3].as<T>(), p_.relu};
    kernels::channel_gradient_sums(s_, g, dbeta, dgamma, channels(a, kArrays));
    const bool on_device = device::current();
    on_device ? launch_gradients(a, inverse, dgamma, dbeta, offset, slope)
              : compute_gradients(a, inverse, dgamma, dbeta, offset, slope);
    kernels::channel_gradient_apply(s_, g, static_cast<const T*>(scale), offset, slope, a.out[0].as<T>());
  }

 private:
  static constexpr int kArrays = 5;
  int64_t per_channel_bytes() const { return (s_.channels * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64; }
  T* channels(const KernelArgs& a, int i) const {
    return reinterpret_cast<T*>(static_cast<char*>(a.workspace) + per_channel_bytes() * i);
  }
  T share() const { return s_.per_channel() > 0 ? T(1) / static_cast<T>(s_.per_channel()) : T(0); }
  // dgamma and dbeta hold the sums of dy * (x - mean) and dy.
  void compute_gradients(const KernelArgs& a, const T* inverse, T* dgamma, T* dbeta, T* offset, T* slope) const {
    const T share = this->share();
    for (int64_t c = 0; c < s_.channels; ++c) {
      offset[c] = p_.batch_statistics ? dbeta[c] * share : T(0);
      slope[c] = p_.batch_statistics ? dgamma[c] * inverse[c] * inverse[c] * share : T(0);
      dgamma[c] *= inverse[c];
    }
    if (a.out[1].data) std::copy_n(dgamma, s_.channels, a.out[1].as<T>());
    if (a.out[2].data) std::copy_n(dbeta, s_.channels, a.out[2].as<T>());
  }
  void launch_gradients(const KernelArgs& a, const T* inverse, T* dgamma, T* dbeta, T* offset, T* slope) const {
    device::BatchNormArguments b{};
    b.inverse = inverse, b.dgamma = dgamma, b.dbeta = dbeta, b.offset = offset, b.slope = slope;
    b.dgamma_out = a.out[1].data, b.dbeta_out = a.out[2].data;
    b.channels = s_.channels;
    b.share = share(), b.batch_statistics = p_.batch_statistics;
    launch_channels<T>("batch_norm_gradients", b);
  }
  BackwardParams p_;
  ChannelShape s_;
};

Ref<Kernel> link_backward(const BackwardParams& p, const LinkContext& c) {
  const ChannelShape s = channel_shape(c.in[1].shape, p.axis, c);
  return make_float_kernel<BackwardKernel>(c.in[1].dtype, p, s);
}

void infer_backward(const BackwardParams& p, InferContext& c) {
  c.unify_dtypes({0, 1}, {0});
  if (const DType d = c.in_dtype(1); d != DType::kUnknown) {
    for (int i = 2; i < 6; ++i) c.set_in_dtype(i, statistics_dtype(d));
    for (int i = 1; i < 3; ++i) c.set_out_dtype(i, statistics_dtype(d));
  }
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  c.set_out_shape(0, c.in_shape(1));
  if (!c.in_shape(1).rank_known()) return;
  const Shape channels{c.in_shape(1)[normalize_axis(p.axis, c.in_shape(1).ndim())]};
  for (int i = 2; i < 6; ++i) c.set_in_shape(i, channels);
  for (int i = 1; i < 3; ++i) c.set_out_shape(i, channels);
}

// ---- rules

// Formulas over one image tensor and per-channel vectors.
struct Channels {
  Shape broadcast;   // (1, ..., channels, ..., 1)
  Tuple others;      // all axes except the channels
  double count = 1;  // elements per channel
  Channels(const Shape& data, int axis_param) : broadcast(Shape::unknown(data.ndim())), others(Tuple::scalar()) {
    const int axis = normalize_axis(axis_param, data.ndim());
    for (int i = 0; i < data.ndim(); ++i) {
      broadcast[i] = i == axis ? data[i] : 1;
      if (i == axis) continue;
      others.push_back(i);
      count *= static_cast<double>(data[i]);
    }
  }
  Value spread(const Value& v) const { return reshape(v, broadcast); }
  Value total(const Value& v) const { return v ? sum(v, others, false) : v; }
};

Values backward(const BackwardParams& p, const Value& dy, const Value& x, const Value& gamma, const Value& beta,
                const Value& mean, const Value& inverse) {
  return call_all(kBackward, {dy, x, gamma, beta, mean, inverse}, ParamSchema<BackwardParams>::box(p));
}

Value inverse_deviation(const Value& variance, double eps) {
  static const OpRef kRsqrt{"rsqrt"};
  return call(kRsqrt, {variance + eps});
}

template <bool kRelu, VarOutput kVar>
Values batch_norm_gradient(const BatchNormParams& p, const GradientContext& g) {
  const bool batch = g.train() && !p.use_global_stats;
  Values grads(5);
  const Value x = g.input(0), mean = g.output(1);
  const Value inverse = kVar == VarOutput::kVariance ? inverse_deviation(g.output(2), p.eps) : g.output(2);
  if (const Value dy = g.output_grad(0)) {
    const Values d =
        backward({.eps = p.eps, .axis = p.axis, .batch_statistics = batch, .unit_gamma = p.fix_gamma, .relu = kRelu},
                 dy, x, g.input(1), g.input(2), mean, inverse);
    grads = {d[0], p.fix_gamma ? Value{} : d[1], d[2], Value{}, Value{}};
  }
  if (!batch || !(g.output_grad(1) || g.output_grad(2))) return grads;
  // The gradient through the outputs mean and var: d mean = 1 / count, d variance = 2 (x - mean) / count.
  const Channels c(g.input_spec(0).shape, p.axis);
  const DType wide = g.output_spec(1).dtype;
  Value dx = grads[0] ? cast(grads[0], wide) : Value{};
  if (const Value d = g.output_grad(1)) dx = dx + broadcast_to(c.spread(d / c.count), g.input_spec(0).shape);
  if (const Value d = g.output_grad(2)) {
    const Value dvariance = kVar == VarOutput::kVariance ? d : d * (inverse * inverse * inverse) * -0.5;
    dx = dx + (cast(x, wide) - c.spread(mean)) * c.spread(dvariance * (2.0 / c.count));
  }
  grads[0] = cast(dx, g.input_spec(0).dtype);
  return grads;
}

// With n(x) = (x - mean) * inverse and P(v) = v - avg(v) - n avg(v n), the gradient is dx = gamma inverse P(dy). P is
// symmetric, and the derivatives of n and inverse by x are n' = inverse P, inverse' = -inverse^2 n / count.
Values backward_gradient(const BackwardParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(1).shape;
  const Channels c(shape, p.axis);
  const DType narrow = g.input_spec(1).dtype, wide = g.input_spec(2).dtype;
  const Value dx = g.output_grad(0), dgamma = g.output_grad(1), dbeta = g.output_grad(2);
  const Value x = g.input(1), gamma = g.input(2), beta = g.input(3);
  Value mean = g.input(4), inverse = g.input(5);
  const Value wide_x = cast(x, wide);
  if (p.batch_statistics) {  // recompute them from x, so that the result can be differentiated again
    mean = c.total(wide_x) / c.count;
    const Value distance = wide_x - c.spread(mean);
    inverse = inverse_deviation(c.total(distance * distance) / c.count, p.eps);
  }
  const Value normal = (wide_x - c.spread(mean)) * c.spread(inverse);
  Value mask;
  if (p.relu) mask = greater((p.unit_gamma ? normal : normal * c.spread(gamma)) + c.spread(beta), 0.0);
  const Value dy = p.relu ? cast(g.input(0), wide) * mask : cast(g.input(0), wide);
  BackwardParams unit = p;
  unit.unit_gamma = true;
  unit.relu = false;
  const auto project = [&](const Value& v) { return backward(unit, cast(v, narrow), x, gamma, beta, mean, inverse); };
  const auto scaled = [&](const Value& v) { return p.unit_gamma ? v : v * c.spread(gamma); };
  const auto spread = [&](const Value& v) { return v ? broadcast_to(c.spread(v), shape) : v; };

  Values of_dx, of_dy;
  if (dx) {
    of_dx = project(dx);
    of_dy = project(dy);
  }
  Values grads(6);
  if (g.wants(0)) {
    Value d = dx ? scaled(cast(of_dx[0], wide)) : Value{};
    if (dgamma) d = d + normal * c.spread(dgamma);
    if (dbeta) d = d + spread(dbeta);
    if (d && p.relu) d = d * mask;
    if (d) grads[0] = cast(d, narrow);
  }
  const Value pairing =
      dx ? c.total(cast(dx, wide) * cast(of_dy[0], wide)) : Value{};  // <dx, inverse P(dy)> per channel
  if (dx && !p.unit_gamma && g.wants(2)) grads[2] = pairing;
  if (!g.wants(1)) return grads;
  if (!p.batch_statistics) {
    if (dgamma) grads[1] = cast(dy * c.spread(dgamma * inverse), narrow);
    return grads;
  }
  Value h = dgamma ? dy * c.spread(dgamma) : Value{};
  if (dx) {
    const Value a = of_dy[1] / c.count, b = of_dx[1] / c.count;  // avg(dy n), avg(dx n)
    const Value change = cast(dx, wide) * c.spread(a * inverse) + dy * c.spread(b * inverse);
    h = h - scaled(change);
  }
  if (!h) return grads;
  Value d = cast(project(h)[0], wide);
  if (dx) d = d - scaled(normal * c.spread(inverse * pairing / c.count));
  grads[1] = cast(d, narrow);
  return grads;
}

int64_t cost_ns(const TensorSpec& data, bool train) { return data.shape.size() * (train ? 2 : 1) / 2 + 500; }

template <typename P, bool kRelu, VarOutput kVar>
OpBuilder<P> declare(OpRegistry& ops, const char* name) {
  auto op = ops.declare<P>(name);
  op.input("data", "any shape with a channel axis")
      .input("gamma", "(channels,): factor after normalization")
      .input("beta", "(channels,): summand after normalization")
      .auxiliary("moving_mean", "(channels,): running mean, used at inference")
      .auxiliary("moving_var", "(channels,): running variance, used at inference")
      .initialized("moving_mean", R"(["zero", {}])")
      .initialized("moving_var", R"(["one", {}])")
      .output("output", "shape of data")
      .output("mean", "(channels,): the mean that normalized data")
      .output("var", kVar == VarOutput::kVariance ? "(channels,): the variance that normalized data"
                                                  : "(channels,): 1 / sqrt(variance + eps)")
      .output("new_moving_mean", "(channels,)")
      .output("new_moving_var", "(channels,)")
      .num_visible_outputs([](const P& p) { return p.output_mean_var ? 3 : 1; })
      .infer([](const P& p, InferContext& c) { infer_batch_norm(p, c); })
      .any_device()
      .link([](const P& p, const LinkContext& c) { return link_forward<kRelu, kVar>(p, c); })
      .halves_through_float()
      .gradient([](const P& p, const GradientContext& g) { return batch_norm_gradient<kRelu, kVar>(p, g); },
                Saves::of({0, 1, 2}, {1, 2}))
      .writeback(3, 3)
      .writeback(4, 4)
      .writeback_active([](const P& p, bool train) { return train && !p.use_global_stats; })
      .inplace(3, 3)
      .inplace(4, 4)
      .train_sensitive()
      .prediction_params([](P p) {
        p.use_global_stats = true;
        return p;
      })
      .skips_unwanted_outputs()
      .image({0}, {0})
      .image_when([](const P& p) { return p.axis == 1; })
      .cost([](const P& p, auto in, auto) { return cost_ns(in[0], !p.use_global_stats); })
      .flops([](const P&, auto in, auto) { return 2.0 * static_cast<double>(in[0].shape.size()); });
  if constexpr (kVar == VarOutput::kInverseDeviation)
    op.repeated_by({.op = "_batch_norm_apply",
                    .inputs = {{.input = 0}, {.input = 1}, {.input = 2}, {.output = 1}, {.output = 2}},
                    .attrs = {{"relu", AttrValue(kRelu)}}});
  return op;
}

Sample sample_of(const Shape& data, int axis, std::vector<std::pair<std::string, std::string>> attrs) {
  const Shape channels{data[axis]};
  return Sample{
      .inputs = {data, channels, channels, channels, channels}, .attrs = std::move(attrs), .low = 0.2, .high = 2.0};
}

}  // namespace

void register_batch_norm(OpRegistry& ops) {
  declare<BatchNormParams, false, VarOutput::kInverseDeviation>(ops, "BatchNorm")
      .alias("_npx_batch_norm")
      .alias("BatchNorm_v1")
      .quantized({.op = "_contrib_quantized_batch_norm", .inputs = {0}, .needs_range = true},
                 [](const BatchNormParams& p) { return p.axis == 1 && !p.output_mean_var; })
      .doc(
          "Normalizes each channel to mean 0 and variance 1 (biased), then scales by gamma and shifts by beta. In "
          "training the "
          "statistics are those of the batch, and moving = momentum * moving + (1 - momentum) * batch.")
      .sample(sample_of({3, 2, 4, 3}, 1, {{"fix_gamma", "False"}}))
      .sample(sample_of({3, 2, 4, 3}, 1, {}))
      .sample(sample_of({5, 3}, 1, {{"fix_gamma", "False"}, {"eps", "1e-5"}, {"momentum", "0.5"}}))
      .sample(sample_of({2, 3, 4, 2}, 3, {{"axis", "-1"}, {"fix_gamma", "False"}}))
      .sample(sample_of({2, 3, 4, 2}, 1, {{"use_global_stats", "True"}, {"fix_gamma", "False"}}))
      .sample(sample_of({3, 2, 5}, 1, {{"output_mean_var", "True"}, {"fix_gamma", "False"}}));
  declare<BatchNormParams, true, VarOutput::kInverseDeviation>(ops, "_contrib_BatchNormWithReLU")
      .doc("BatchNorm followed by max(., 0).")
      .sample(sample_of({3, 2, 4, 3}, 1, {{"fix_gamma", "False"}}))
      .sample(sample_of({3, 2, 4, 3}, 1, {}))
      .sample(sample_of({2, 3, 4, 2}, 1, {{"use_global_stats", "True"}, {"fix_gamma", "False"}}));
  declare<SyncBatchNormParams, false, VarOutput::kVariance>(ops, "_contrib_SyncBatchNorm")
      .doc(
          "BatchNorm with statistics over the devices of one process group; on one device they are those of its batch.")
      .amp(AmpType::kFloat)
      .sample(sample_of({3, 2, 4, 3}, 1, {{"fix_gamma", "False"}, {"key", "bn0"}}))
      .sample(sample_of({3, 2, 5}, 1, {{"output_mean_var", "True"}, {"fix_gamma", "False"}, {"key", "bn0"}}));

  ops.declare<ApplyParams>("_batch_norm_apply")
      .internal()
      .doc("The output of BatchNorm, recomputed bit-equal from its statistics.")
      .input("data", "same as in BatchNorm")
      .input("gamma", "(channels,)")
      .input("beta", "(channels,)")
      .input("mean", "(channels,): output of BatchNorm")
      .input("inverse_deviation", "(channels,): output of BatchNorm")
      .output("output", "shape and dtype of data")
      .infer(infer_apply)
      .any_device()
      .link(link_apply)
      .halves_through_float()
      .gradient(kNotDifferentiable)
      .inplace(0, 0)
      .image({0}, {0})
      .image_when([](const ApplyParams& p) { return p.axis == 1; })
      .cost([](const ApplyParams&, auto in, auto) { return cost_ns(in[0], false); })
      .flops([](const ApplyParams&, auto in, auto) { return 2.0 * static_cast<double>(in[0].shape.size()); })
      .sample({.inputs = {{3, 2, 4}, Shape{2}, Shape{2}, Shape{2}, Shape{2}}, .low = 0.2, .high = 2.0})
      .sample({.inputs = {{3, 2, 4, 3}, Shape{2}, Shape{2}, Shape{2}, Shape{2}},
               .attrs = {{"relu", "True"}, {"fix_gamma", "True"}},
               .low = -2.0,
               .high = 2.0})
      .sample({.inputs = {{2, 3, 4}, Shape{4}, Shape{4}, Shape{4}, Shape{4}}, .attrs = {{"axis", "-1"}}, .low = 0.2});
  ops.declare<BackwardParams>("_batch_norm_backward")
      .internal()
      .doc("Gradient of BatchNorm for data, gamma and beta.")
      .input("output_grad", "shape of data")
      .input("data", "same as in BatchNorm")
      .input("gamma", "(channels,)")
      .input("beta", "(channels,)")
      .input("mean", "(channels,): mean of the forward pass")
      .input("inverse_deviation", "(channels,): inverse deviation of the forward pass")
      .output("data_grad", "shape of data")
      .output("gamma_grad", "(channels,)")
      .output("beta_grad", "(channels,)")
      .infer(infer_backward)
      .any_device()
      .link(link_backward)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .skips_unwanted_outputs()
      .image({0, 1}, {0})
      .image_when([](const BackwardParams& p) { return p.axis == 1; })
      .cost([](const BackwardParams&, auto in, auto) { return cost_ns(in[1], true) * 3 / 2; })
      .sample(
          Sample{.inputs = {{3, 2, 4}, {3, 2, 4}, Shape{2}, Shape{2}, Shape{2}, Shape{2}},
                 .check_gradient = false,
                 .note = "random statistics are not those of the data; BatchNorm's own samples check second order"});
}

}  // namespace hybridnet::ops
