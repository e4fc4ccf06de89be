// The parameters of the kernels of optimizers (kernels/device/update.cuh), as the library and the kernels see them: a
// table of tensors, updated by one launch, and the source of the rule for each of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hybridnet::device {

// The tensors of one update. `master` is a float32 copy of the weight, or null.
template <int kStates>
struct UpdateTensors {
  const void* weight;
  const void* grad;
  const void* state_in[kStates > 0 ? kStates : 1];
  void* state_out[kStates > 0 ? kStates : 1];
  const float* master_in = nullptr;
  float* master_out = nullptr;
  void* out;
  int64_t size;
};

inline constexpr int64_t kUpdateBlock = 2048;  // elements of a block of threads

// Rules that the host has made.
template <class Rule, int kCapacity>
struct GivenRules {
  Rule rules[kCapacity];
};

// Learning rates and weight decays are arrays, with an element for each tensor; `first`: that of the table's first.
struct PreloadedRules {
  const float *lrs, *wds;
  double momentum, rescale_grad, clip_gradient;
  int64_t first;
};

// Parameters P of an operator, of which some are elements of an array: _update_with_rates.
struct RatedField {
  int32_t offset;      // in the parameters; negative: the column is for other operators
  int32_t is_integer;  // int32, else double
};
inline constexpr int kMaxRates = 16;
template <class P>
struct RatedRule {
  P params;
  const double* rates;
  int64_t columns;
  RatedField fields[kMaxRates];
};

template <class Source, int kStates, int kCapacity>
struct UpdateArguments {
  const float* condition;  // the update runs if the element is not 0; null: always
  const void* scalars[2];  // arrays of one element for Rule::with_scalars()
  int64_t count;           // of tensors
  Source source;
  UpdateTensors<kStates> tensors[kCapacity];
  int32_t first_block[kCapacity + 1];
};

// How many tensors a launch has room for: parameters are kept below the 4096 bytes of a kernel.
template <int kStates>
constexpr int update_capacity(size_t rule_bytes) {
  return static_cast<int>(3400 / (sizeof(UpdateTensors<kStates>) + rule_bytes + sizeof(int32_t)));
}

// ---- sums of squares

struct SquaresTensor {
  const void* data;
  int64_t size;
};
inline constexpr int64_t kSquaresBlock = 4096;
inline constexpr int kMaxSquares = 128;
// partial[first_block[i] ...]: float64 sums of blocks of tensor i.
struct SquaresArguments {
  double* partial;
  int64_t count;
  SquaresTensor tensors[kMaxSquares];
  int32_t first_block[kMaxSquares + 1];
};
// *out becomes 0 if an element of a tensor is infinite or NaN.
struct FiniteArguments {
  float* out;
  int64_t count;
  SquaresTensor tensors[kMaxSquares];
  int32_t first_block[kMaxSquares + 1];
};
// out[i]: the sum of tensor i.
struct JoinSquaresArguments {
  const double* partial;
  void* out;
  int64_t count;
  int32_t first_block[kMaxSquares + 1];
};

struct LarsArguments {
  const float *lrs, *weights, *grads, *wds;
  float* out;
  int64_t n;
  double eta, eps, rescale_grad;
};

// out = rates, its first element times the factor of a layer; `partial`: `weight_blocks` sums of the weight, then those
// of the gradient.
struct LayerRatesArguments {
  const double *partial, *rates;
  double* out;
  int64_t weight_blocks, grad_blocks, columns, is_lars;
  double eta, eps;
};

// weight -= rate * step of a complete LAMB update. totals: sums of squares of the weight and of the step.
struct LambArguments {
  const void *weight, *step;
  float* master_out;
  void* out;
  const double* totals;
  int64_t n;
  double lr, lower_bound, upper_bound;
};

// AdaGrad with one history for each of `count` rows.
struct RowsAdagradArguments {
  const void *weight, *grad, *before;
  void *out, *history;
  int64_t count, width;
  double lr, rescale_grad, epsilon, clip_gradient;
};

}  // namespace hybridnet::device
