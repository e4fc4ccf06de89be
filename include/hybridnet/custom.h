// Operators that are written outside the library (mx.operator.CustomOp). The operator `Custom` calls the installed
// CustomOperators.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/ndarray.h"
#include "hybridnet/op.h"

namespace hybridnet {

// One use of Custom: the type of the operator, and its keyword arguments as a JSON object of texts.
struct CustomParams {
  std::string op_type, open_attributes;
  int32_t num_args = 0;
  static void describe(ParamSchema<CustomParams>& schema);
};

// The objects that forward runs of opaque operators keep for their gradients. The values of a graph hold the numbers of
// these objects, so that each iteration of a loop finds its own. Used by one thread at a time.
class KeptObjects {
 public:
  int64_t keep(Ref<Object> object) {
    objects_.push_back(std::move(object));
    return static_cast<int64_t>(objects_.size()) - 1;
  }
  Object& at(int64_t number) const { return *objects_.at(static_cast<size_t>(number)); }

 private:
  std::vector<Ref<Object>> objects_;
};

// One use of Custom in a plan, for inputs of known shapes and dtypes. Arrays belong to the call: the operator may keep
// them.
class LinkedCustom : public RefCounted<LinkedCustom> {
 public:
  virtual ~LinkedCustom() = default;
  // Fills outputs and may change states. keep: return the object that backward() needs, else null.
  virtual Ref<Object> forward(std::span<const NDArray> inputs, std::span<const NDArray> states,
                              std::span<const NDArray> outputs, bool train, bool keep) = 0;
};

// The arguments of backward(), which fills input_grads, one per input. kept: the object from forward().
struct CustomGradient {
  Object& kept;
  std::span<const NDArray> output_grads, inputs, outputs, input_grads;
};

// Every member is called on the thread of the caller, which is never a worker, and may throw.
class CustomOperators {
 public:
  virtual ~CustomOperators() = default;
  virtual int num_outputs(const CustomParams& use) = 0;
  virtual int num_arguments(const CustomParams& use) = 0;  // later inputs are auxiliary states
  virtual void infer(const CustomParams& use, InferContext& context) = 0;
  virtual Ref<LinkedCustom> link(const CustomParams& use, std::span<const TensorSpec> inputs) = 0;
  virtual void backward(const CustomGradient& gradient) = 0;
  // Computes all outputs in one call. Records its own gradient: the autograd state is the caller's.
  virtual std::vector<NDArray> call(const CustomParams& use, std::span<const NDArray> inputs) = 0;

  // True if the operator requests its inputs one by one, and perhaps not all. Then graphs run it by call_lazy(), with
  // the specs of the inputs and a function that computes input i and the nodes that it depends on.
  virtual bool is_lazy(const CustomParams& use) = 0;
  virtual std::vector<NDArray> call_lazy(const CustomParams& use, std::span<const TensorSpec> inputs,
                                         const std::function<NDArray(size_t)>& input) = 0;
};

void install_custom_operators(CustomOperators* operators);  // not owned; null: there are none
CustomOperators& custom_operators(
    const CustomParams& use);  // throws UnsupportedError naming use.op_type if there are none

}  // namespace hybridnet
