// LRN: local response normalization across channels.
//   Krizhevsky, Sutskever, Hinton: ImageNet classification with deep convolutional neural networks, NIPS 2012,
//   section 3.3.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "ops/cost.h"
#include "ops/device_launch.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kWindowSum{"_lrn_window_sum"}, kPower{"_power_scalar"};

struct LrnParams {
  double alpha, beta, knorm;
  int64_t nsize;
  double scale() const { return alpha / static_cast<double>(nsize); }
  static void describe(ParamSchema<LrnParams>& schema) {
    schema.field("alpha", &LrnParams::alpha).default_value(1e-4).doc("Factor of the mean square.");
    schema.field("beta", &LrnParams::beta).default_value(0.75).doc("Exponent.");
    schema.field("knorm", &LrnParams::knorm).default_value(2.0).doc("Added to the scaled mean square.");
    schema.field("nsize", &LrnParams::nsize).at_least(1).doc("Channels in the window around each channel; odd.");
    schema.check([](const LrnParams& p) {
      if (p.nsize % 2 == 0)
        throw ParamError({.input = "nsize", .expected = "an odd number", .given = std::to_string(p.nsize)});
    });
  }
};

struct WindowParams {
  int64_t nsize;
  static void describe(ParamSchema<WindowParams>& schema) {
    schema.field("nsize", &WindowParams::nsize).at_least(1).doc("Channels in the window; odd.");
  }
};

void infer_lrn(const LrnParams&, InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
  if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() < 2)
    throw ShapeError(
        {.input = "data", .expected = "at least 2 axes: batch and channels", .given = "shape " + c.in_shape(0).str()});
}

// Calls f(channel, first, last) for the channels of one example, in pieces of its inner axis; [first, last) is the
// window of the channel.
struct Channels {
  int64_t batch, channels, inner, half;
  Channels(const Shape& s, int64_t nsize) : batch(s[0]), channels(s[1]), inner(s.size(2, s.ndim())), half(nsize / 2) {}
  int64_t first(int64_t c) const { return std::max<int64_t>(c - half, 0); }
  int64_t last(int64_t c) const { return std::min(c + half + 1, channels); }
  double plane_ns() const { return 5.0 * static_cast<double>(inner); }
  // f(row of the tensor seen as (batch * channels, inner), offset of the example, channel)
  template <typename F>
  void for_each(F&& f) const {
    parallel_for(batch * channels, plane_ns(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) f(row * inner, row / channels * channels * inner, row % channels);
    });
  }
};

// x * norm^-beta
template <typename T>
void scale_by_power(int64_t n, T beta, const T* x, const T* norm, T* out) {
  if (beta == T(0.75)) {
    for (int64_t i = 0; i < n; ++i) {
      const T root = std::sqrt(norm[i]);
      out[i] = x[i] / (root * std::sqrt(root));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * std::pow(norm[i], -beta);
  }
}

template <typename T>
void normalize(const LrnParams& p, const KernelArgs& a) {
  const Channels s(*a.in[0].shape, p.nsize);
  const T* in = a.in[0].as<T>();
  T *out = a.out[0].as<T>(), *norms = a.out[1].as<T>();
  const T scale = static_cast<T>(p.scale()), knorm = static_cast<T>(p.knorm), beta = static_cast<T>(p.beta);
  s.for_each([&](int64_t at, int64_t example, int64_t channel) {
    T* norm = norms + at;
    std::fill_n(norm, s.inner, T(0));
    for (int64_t c = s.first(channel); c < s.last(channel); ++c) {
      const T* x = in + example + c * s.inner;
      for (int64_t i = 0; i < s.inner; ++i) norm[i] += x[i] * x[i];
    }
    for (int64_t i = 0; i < s.inner; ++i) norm[i] = norm[i] * scale + knorm;
    scale_by_power(s.inner, beta, in + at, norm, out + at);
  });
}

device::ChannelWindowArguments window_arguments(const Channels& s, const KernelArgs& a) {
  return {.in = a.in[0].data,
          .out = a.out[0].data,
          .batch = s.batch,
          .channels = s.channels,
          .inner = s.inner,
          .half = s.half};
}

void run_lrn(const LrnParams& p, const KernelArgs& a) {
  if (device::current()) {
    device::ChannelWindowArguments w = window_arguments(Channels(*a.in[0].shape, p.nsize), a);
    w.norms = a.out[1].data, w.scale = p.scale(), w.knorm = p.knorm, w.beta = p.beta;
    return on_device::launch("windows.cuh", "ChannelWindowArguments", on_device::with_dtype("lrn", a.in[0].dtype),
                             a.in[0].size(), w);
  }
  a.in[0].dtype == DType::kFloat64 ? normalize<double>(p, a) : normalize<float>(p, a);
}

template <typename T>
void sum_window(const Channels& s, const T* in, T* out) {
  s.for_each([&](int64_t at, int64_t example, int64_t channel) {
    std::fill_n(out + at, s.inner, T(0));
    for (int64_t c = s.first(channel); c < s.last(channel); ++c) {
      const T* x = in + example + c * s.inner;
      for (int64_t i = 0; i < s.inner; ++i) out[at + i] += x[i];
    }
  });
}

void run_window_sum(const WindowParams& p, const KernelArgs& a) {
  const Channels s(*a.in[0].shape, p.nsize);
  if (device::current()) {
    return on_device::launch("windows.cuh", "ChannelWindowArguments",
                             on_device::with_dtype("lrn_window_sum", a.in[0].dtype), a.in[0].size(),
                             window_arguments(s, a));
  }
  if (a.in[0].dtype == DType::kFloat64)
    sum_window(s, a.in[0].as<double>(), a.out[0].as<double>());
  else
    sum_window(s, a.in[0].as<float>(), a.out[0].as<float>());
}

Value window_sum(const Value& v, int64_t nsize) { return call(kWindowSum, {v}, {{"nsize", nsize}}); }
Value power(const Value& v, double exponent) { return call(kPower, {v}, {{"scalar", exponent}}); }

// norm = knorm + scale W(x^2), y = x norm^-beta, W symmetric:
//   dx = dy norm^-beta + 2 scale x W(dnorm - beta dy x norm^(-beta - 1))
Values lrn_gradient(const LrnParams& p, const GradientContext& g) {
  const Value x = g.input(0), dy = g.output_grad(0);
  Value dx, arriving = g.output_grad(1);
  if (dy) {
    const Value norm = g.output(1);
    dx = dy * power(norm, -p.beta);
    arriving = arriving - dy * x * power(norm, -p.beta - 1) * p.beta;
  }
  if (!arriving) return {};
  return {dx + x * window_sum(arriving, p.nsize) * (2 * p.scale())};
}

}  // namespace

void register_lrn(OpRegistry& ops) {
  ops.declare<LrnParams>("LRN")
      .doc("Divides by (knorm + alpha / nsize * sum of squares over nsize neighboring channels) ^ beta.")
      .input("data", "(batch, channels, ...)")
      .names_its_input()
      .output("output", "shape and dtype of data")
      .output("tmp_norm", "the base of the power beta; shape of data")
      .visible_outputs(1)
      .infer(infer_lrn)
      .any_device()
      .cpu(run_lrn, kFloating)
      .halves_through_float()
      .gradient(lrn_gradient, Saves::of({0}, {1}))
      .cost([](const LrnParams& p, auto in, auto) {
        return elements(in[0]) * (2 + std::min<int64_t>(p.nsize, in[0].shape[1]) / 4);
      })
      .amp(AmpType::kFloat)
      .sample({{2, 5, 3}}, {{"nsize", "3"}, {"alpha", "0.3"}})
      .sample({{2, 4, 2, 2}}, {{"nsize", "5"}, {"alpha", "0.5"}, {"beta", "0.6"}, {"knorm", "1.5"}});
  ops.declare<WindowParams>("_lrn_window_sum")
      .internal()
      .doc("Sum over the neighboring channels of each channel; part of the gradient of LRN.")
      .input("data", "(batch, channels, ...)")
      .output("out", "shape and dtype of data")
      .infer([](const WindowParams&, InferContext& c) {
        c.unify_dtypes();
        c.unify_shapes();
      })
      .any_device()
      .cpu(run_window_sum, kFloating)
      .halves_through_float()
      .gradient(
          [](const WindowParams& p, const GradientContext& g) -> Values {
            return {g.output_grad(0) ? window_sum(g.output_grad(0), p.nsize) : Value{}};
          },
          Saves::nothing())
      .sample({{2, 5, 3}}, {{"nsize", "3"}});
}

}  // namespace hybridnet::ops
