// Parameters and gradient rule that softmax, log_softmax and softmin share.
#pragma once

#include <optional>

#include "hybridnet/op.h"

namespace hybridnet::ops {

struct SoftmaxParams {
  int32_t axis = -1;
  std::optional<double> temperature;
  std::optional<DType> dtype;
  std::optional<bool> use_length;
  static void describe(ParamSchema<SoftmaxParams>& schema);
};

// Parameters of the operators without a length input: use_length is accepted, but must be false.
struct LogSoftmaxParams : SoftmaxParams {
  static void describe(ParamSchema<LogSoftmaxParams>& schema);
};

enum class SoftmaxKind { kSoftmax, kLogSoftmax, kSoftmin };

// Factor of the data before the exponential.
double softmax_scale(const SoftmaxParams& p, SoftmaxKind kind);

// The gradient rule, which reads output 0 only.
Values softmax_gradient(const SoftmaxParams& p, SoftmaxKind kind, const GradientContext& g);

}  // namespace hybridnet::ops
