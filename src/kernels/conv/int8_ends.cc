#include "kernels/conv/int8_ends.h"

#include <algorithm>
#include <cmath>

#include "kernels/conv/byte_steps.h"
#include "kernels/functors/byte_steps.h"

namespace hybridnet::kernels {
namespace {

void activate(const onednn::Activation& a, float* t, int64_t n) {
  const auto each = [t, n](auto f) {
    for (int64_t i = 0; i < n; ++i) t[i] = f(t[i]);
  };
  switch (a.kind) {
    case ActivationKind::kNone:
      return;
    case ActivationKind::kRelu:
      return each([](float x) { return std::max(x, 0.0f); });
    case ActivationKind::kSigmoid:
      return each([](float x) { return 1.0f / (1.0f + std::exp(-x)); });
    case ActivationKind::kTanh:
      return each([](float x) { return std::tanh(x); });
    case ActivationKind::kSoftRelu:
      return each([](float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); });
    case ActivationKind::kSoftSign:
      return each([](float x) { return x / (1.0f + std::abs(x)); });
    case ActivationKind::kGelu:
      return each([](float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); });
    case ActivationKind::kGeluTanh:
      return each([](float x) { return 0.5f * x * (1.0f + std::tanh(0.79788456f * (x + 0.044715f * x * x * x))); });
    case ActivationKind::kSilu:
      return each([](float x) { return x / (1.0f + std::exp(-x)); });
    case ActivationKind::kClip:
      return each([&a](float x) { return std::clamp(x, a.alpha, a.beta); });
    case ActivationKind::kElu:
      return each([&a](float x) { return x > 0.0f ? x : a.alpha * std::expm1(x); });
    case ActivationKind::kLeaky:
      return each([&a](float x) { return x > 0.0f ? x : a.alpha * x; });
  }
}

void add_bias(const Int8ConvOptions& options, const Int8ConvTensors& t, const Int8EndRange& range,
              const int32_t* sums) {
  int32_t* y = static_cast<int32_t*>(t.y) + range.offset;
  const int32_t* bias = options.bias ? static_cast<const int32_t*>(t.bias) + range.channel : nullptr;
  for (int64_t j = 0; j < range.count; ++j) {
    const uint32_t b = bias ? static_cast<uint32_t>(bias[j]) : 0;
    y[j * range.step] = static_cast<int32_t>(static_cast<uint32_t>(sums[j]) + b);
  }
}

template <typename T>
void add_bytes_to(const T* addend, const Int8EndRange& range, float* values) {
  for (int64_t j = 0; j < range.count; ++j) values[j] += static_cast<float>(addend[range.offset + j * range.step]);
}

template <typename T>
void store_bytes(const float* values, float scale, const Int8EndRange& range, T* y) {
  y += range.offset;
  if (range.step == 1) return floats_to_bytes(values, range.count, scale, 0.0f, y);
  for (int64_t j = 0; j < range.count; ++j) y[j * range.step] = nearest_step<T>(values[j] * scale);
}

}  // namespace

void finish_sums(const Int8ConvOptions& options, const Int8ConvTensors& t, const Int8EndRange& range,
                 const int32_t* sums, float* values) {
  if (options.out == DType::kInt32) return add_bias(options, t, range, sums);
  const float* const scale = t.scale + range.channel;
  const float* const bias = options.bias ? static_cast<const float*>(t.bias) + range.channel : nullptr;
  for (int64_t j = 0; j < range.count; ++j)
    values[j] = static_cast<float>(sums[j]) * scale[j] + (bias ? bias[j] : 0.0f);
  activate(options.activation, values, range.count);
  if (options.add) {
    if (options.addend == DType::kUInt8)
      add_bytes_to(static_cast<const uint8_t*>(t.addend), range, values);
    else
      add_bytes_to(static_cast<const int8_t*>(t.addend), range, values);
  }
  activate(options.last_activation, values, range.count);
  switch (options.out) {
    case DType::kInt8:
      return store_bytes(values, 1.0f / t.out_step, range, static_cast<int8_t*>(t.y));
    case DType::kUInt8:
      return store_bytes(values, 1.0f / t.out_step, range, static_cast<uint8_t*>(t.y));
    default:
      for (int64_t j = 0; j < range.count; ++j) static_cast<float*>(t.y)[range.offset + j * range.step] = values[j];
  }
}

}  // namespace hybridnet::kernels
