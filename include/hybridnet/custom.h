// Operators that are written outside the library (mx.operator.CustomOp). The operator `Custom` asks whoever is
// installed.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/ndarray.h"
#include "hybridnet/op.h"

namespace hybridnet {

// One use of Custom: which operator, and its keyword arguments as a JSON object of texts.
struct CustomParams {
  std::string op_type, open_attributes;
  int32_t num_args = 0;
  static void describe(ParamSchema<CustomParams>& schema);
};

// Every member is called on the thread of the caller, which never is a worker, and may throw.
class CustomOperators {
 public:
  virtual ~CustomOperators() = default;
  virtual int num_outputs(const CustomParams& use) = 0;
  virtual int num_arguments(const CustomParams& use) = 0;  // inputs behind these are auxiliary states
  virtual void infer(const CustomParams& use, InferContext& context) = 0;
  // Computes all outputs. Records its own gradient: autograd is in the state of the caller.
  virtual std::vector<NDArray> call(const CustomParams& use, std::span<const NDArray> inputs) = 0;

  // Does the operator ask for its inputs one by one, and perhaps not for all? Then graphs run it by call_lazy(): what
  // is known of its inputs, and how to get one, which computes what leads to it.
  virtual bool is_lazy(const CustomParams& use) = 0;
  virtual std::vector<NDArray> call_lazy(const CustomParams& use, std::span<const TensorSpec> inputs,
                                         const std::function<NDArray(size_t)>& input) = 0;
};

void install_custom_operators(CustomOperators* operators);  // not owned; null: there are none
CustomOperators& custom_operators(
    const CustomParams& use);  // throws UnsupportedError naming use.op_type if there are none

}  // namespace hybridnet
