// _contrib_calibrate_entropy: the quantization range that preserves most of a distribution's information.
#include <cmath>
#include <limits>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct CalibrateParams {
  int32_t num_quantized_bins;
  static void describe(ParamSchema<CalibrateParams>& schema) {
    schema.field("num_quantized_bins", &CalibrateParams::num_quantized_bins)
        .default_value(255)
        .at_least(1)
        .doc("Number of quantization steps inside the range.");
  }
};

using Floats = Temporary<float>;

// Gives zeros a small share, subtracted in equal parts from the other elements. Returns false if this
// would subtract 1 or more.
bool smooth(Floats& p) {
  constexpr float kShare = 0.0001f;
  int64_t zeros = 0;
  for (const float x : p) zeros += x == 0.0f;
  const int64_t others = static_cast<int64_t>(p.size()) - zeros;
  if (others == 0) return false;
  const float taken = kShare * static_cast<float>(zeros) / static_cast<float>(others);
  if (taken >= 1.0f) return false;
  for (float& x : p) x += x == 0.0f ? kShare : -taken;
  return true;
}

// Kullback and Leibler, "On Information and Sufficiency", 1951; for distributions that are not normalized.
float divergence(const Floats& p, const Floats& q) {
  float p_sum = 0, q_sum = 0, total = 0;
  for (const float x : p) p_sum += x;
  for (const float x : q) q_sum += x;
  for (size_t i = 0; i < p.size(); ++i) {
    const float a = p[i] / p_sum, b = q[i] / q_sum;
    if (!(a > 0 && b > 0)) return std::numeric_limits<float>::infinity();
    total += a * std::log(a / b);
  }
  return total;
}

// The divergence if the middle 2 reach + 1 bins are quantized to `steps` steps and values outside are moved to the end
// bins.
float loss(const float* hist, int64_t bins, int64_t reach, int64_t steps) {
  const int64_t first = bins / 2 - reach, last = std::min(bins / 2 + reach + 1, bins), width = last - first;
  Floats p(static_cast<size_t>(width)), q(p.size());
  Temporary<double> counts(p.size());  // integers of any size
  // In the counts of the steps, the first bin is empty: it holds only outliers. The last bin holds outliers and its own
  // values.
  for (int64_t j = 0; j < bins; ++j) {
    const size_t to = static_cast<size_t>(std::clamp(j - first, int64_t{0}, width - 1));
    p[to] += hist[j];
    if (j > first && j < last) counts[to] = std::trunc(static_cast<double>(hist[j]));
  }
  const int64_t merged = width / steps;
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t begin = s * merged, end = s == steps - 1 ? width : begin + merged;
    double sum = 0;
    int64_t filled = 0;
    for (int64_t j = begin; j < end; ++j) {
      sum += counts[static_cast<size_t>(j)];
      filled += counts[static_cast<size_t>(j)] != 0;
    }
    if (filled == 0) continue;
    const float share = static_cast<float>(sum) / static_cast<float>(filled);
    for (size_t j = static_cast<size_t>(begin); j < static_cast<size_t>(end); ++j)
      if (p[j] != 0.0f) q[j] = share;
  }
  return smooth(p) && smooth(q) ? divergence(p, q) : std::numeric_limits<float>::infinity();
}

void run(const CalibrateParams& p, const KernelArgs& a) {
  const float *hist = a.in[0].as<float>(), *edges = a.in[1].as<float>();
  const int64_t bins = a.in[0].size(), least = p.num_quantized_bins / 2, most = bins / 2;
  Floats losses(static_cast<size_t>(most - least + 1));
  parallel_for(static_cast<int64_t>(losses.size()), 8.0 * static_cast<double>(bins), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      losses[static_cast<size_t>(i)] = loss(hist, bins, least + i, p.num_quantized_bins);
  });
  float smallest = std::numeric_limits<float>::max();
  int64_t best = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] >= smallest) continue;
    smallest = losses[i];
    best = static_cast<int64_t>(i);
  }
  *a.out[0].as<float>() = edges[std::min(bins / 2 + least + best + 1, bins)];
  *a.out[1].as<float>() = smallest;
}

void infer(const CalibrateParams& p, InferContext& c) {
  c.set_in_dtype(0, DType::kFloat32);
  c.set_in_dtype(1, DType::kFloat32);
  for (int i = 0; i < 2; ++i) {
    c.set_out_shape(i, Shape({1}));
    c.set_out_dtype(i, DType::kFloat32);
  }
  c.set_in_shape(0, Shape({kUnknownDim}));
  const int64_t bins = c.in_shape(0)[0];
  if (bins == kUnknownDim) return;
  c.set_in_shape(1, Shape({bins + 1}));
  if (bins < p.num_quantized_bins) {
    throw ShapeError({.input = "hist",
                      .expected = "at least " + std::to_string(p.num_quantized_bins) + " bins",
                      .given = std::to_string(bins),
                      .because = "they are merged into num_quantized_bins"});
  }
}

}  // namespace

void register_calibrate(OpRegistry& ops) {
  Sample sample;
  sample.inputs = {{41}, {42}};
  sample.dtypes = {DType::kFloat32, DType::kFloat32};
  sample.attrs = {{"num_quantized_bins", "15"}};
  sample.low = 0;
  sample.high = 50;
  sample.integer_valued = true;
  ops.declare<CalibrateParams>("_contrib_calibrate_entropy")
      .doc(
          "The threshold in the histogram of a tensor, symmetric around zero, at which values cut off there and "
          "rounded "
          "to num_quantized_bins steps are distributed most like the values themselves.")
      .input("hist", "float32 (bins,): counts; an odd number of bins")
      .input("hist_edges", "float32 (bins + 1,): ends of the bins")
      .output("threshold", "(1,): the end of the range")
      .output("divergence", "(1,): Kullback-Leibler divergence, in nats")
      .infer(infer)
      .cpu(run, DType::kFloat32)
      .gradient(kNotDifferentiable)
      .sample(sample);
}

}  // namespace hybridnet::ops
