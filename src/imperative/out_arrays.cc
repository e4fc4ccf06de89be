#include "imperative/out_arrays.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "hybridnet/imperative.h"
#include "ndarray/overlap.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

constexpr size_t kFewArrays = 16;  // up to this many are compared with each other

std::string name_of(size_t index, size_t count) { return count == 1 ? "out" : "out[" + std::to_string(index) + "]"; }

[[noreturn]] void wrong_out(const std::string& op, std::string name, const TensorSpec& result,
                            const TensorSpec& given) {
  ErrorFields e{.op = op, .input = std::move(name), .expected = "an array of " + result.str(), .given = given.str()};
  e.because = "the operator computes this from its inputs";
  if (!(result.shape == given.shape)) {
    e.fix = "give an array of that shape, or leave out= away";
    throw ShapeError(std::move(e));
  }
  e.fix = "give an array of that dtype, or leave out= away and cast the result";
  throw DTypeError(std::move(e));
}

// Holds the specs that an operator infers from inputs alone; on the stack if they are few.
class SpecsAlone {
 public:
  SpecsAlone(size_t inputs, size_t outputs) {
    const size_t count = inputs + outputs;
    if (count > few_.size()) many_.resize(count);
    TensorSpec* const specs = count > few_.size() ? many_.data() : few_.data();
    in = {specs, inputs};
    out = {specs + inputs, outputs};
  }
  SpecsAlone(const SpecsAlone&) = delete;
  std::span<TensorSpec> in, out;

 private:
  std::array<TensorSpec, 8> few_;
  std::vector<TensorSpec> many_;
};

void infer(const Op& op, const void* params, bool train, std::span<const NDArray> inputs,
           std::span<TensorSpec> in_specs, std::span<TensorSpec> out_specs) {
  for (size_t i = 0; i < inputs.size(); ++i) in_specs[i] = inputs[i].spec();
  InferContext context(op, in_specs, out_specs, train);
  op.infer(params, context);
}

// True if an update of many arrays returns output i in the input that it replaces: both have one spec.
bool is_updated_input(const Op& op, const void* params, std::span<const NDArray> inputs, const NDArray& out, size_t i) {
  if (!op.variadic_inplace || op.differentiable()) return false;
  const int input = op.variadic_inplace(params, static_cast<int>(i));
  return input >= 0 && inputs[static_cast<size_t>(input)] == out;
}

}  // namespace

void require_specs(const std::string& op, std::span<const NDArray> out, std::span<const TensorSpec> results) {
  for (size_t i = 0; i < out.size(); ++i)
    if (!(out[i].spec() == results[i])) wrong_out(op, name_of(i, out.size()), results[i], out[i].spec());
}

void require_specs(const std::string& op, std::span<const NDArray> out, std::span<const NDArray> results) {
  for (size_t i = 0; i < out.size(); ++i)
    if (!(out[i].spec() == results[i].spec())) wrong_out(op, name_of(i, out.size()), results[i].spec(), out[i].spec());
}

void require_apart(const std::string& op, std::span<const NDArray> written) {
  if (written.size() < 2 || (written.size() > kFewArrays && !any_overlap(written))) return;
  for (size_t i = 1; i < written.size(); ++i) {
    if (!written[i]) continue;
    for (size_t k = 0; k < i; ++k) {
      if (!written[k] || !overlap(written[k], written[i])) continue;
      throw ValueError({.op = op,
                        .input = "out",
                        .expected = "arrays that lie apart for the results of one call",
                        .given = "arrays that overlap, for results " + std::to_string(k) + " and " + std::to_string(i),
                        .because = "one result would be written over the other",
                        .fix = "give arrays that share no memory"});
    }
  }
}

void infer_beside(const Op& op, const void* params, bool train, std::span<const NDArray> inputs,
                  std::span<const NDArray> out, std::span<TensorSpec> in_specs, std::span<TensorSpec> out_specs) {
  for (size_t i = 0; i < out.size(); ++i) out_specs[i] = out[i].spec();
  try {
    infer(op, params, train, inputs, in_specs, out_specs);
  } catch (const Error&) {
    SpecsAlone alone(inputs.size(), out_specs.size());
    infer(op, params, train, inputs, alone.in, alone.out);  // throws if the inputs are the reason
    if (std::all_of(alone.out.begin(), alone.out.end(), [](const TensorSpec& spec) { return spec.known(); }))
      require_specs(op.name, out, alone.out);
    throw;
  }
  require_specs(op.name, out, out_specs);
  // An operator may infer from its outputs, for example the rank of an input or an open dtype. But the shape must be
  // the one that follows from the inputs, if they determine it. If all shapes are equal, as in in-place arithmetic, and
  // in updates, the outputs add no information.
  bool adds_nothing = true;
  for (size_t i = 0; i < out.size() && !inputs.empty() && adds_nothing; ++i)
    adds_nothing = out[i].shape() == inputs[0].shape() || is_updated_input(op, params, inputs, out[i], i);
  if (inputs.empty() || adds_nothing) return;
  SpecsAlone alone(inputs.size(), out_specs.size());
  infer(op, params, train, inputs, alone.in, alone.out);
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorSpec told{alone.out[i].shape, out[i].dtype()};
    if (told.shape.known() && !(told.shape == out[i].shape()))
      wrong_out(op.name, name_of(i, out.size()), told, out[i].spec());
  }
}

std::vector<NDArray> apart_from_states(const Op& op, const void* params, std::span<const NDArray> inputs,
                                       size_t num_outputs) {
  if (inputs.size() > kFewArrays && !any_overlap(inputs)) return {};
  std::vector<NDArray> apart;
  const auto is_state = [&](size_t i) {
    for (size_t k = 0; k < num_outputs; ++k)
      if (op.writeback_input(params, static_cast<int>(k)) == static_cast<int>(i)) return true;
    return false;
  };
  for (size_t k = 0; k < num_outputs; ++k) {
    const int state = op.writeback_input(params, static_cast<int>(k));
    for (size_t i = 0; state >= 0 && i < inputs.size(); ++i) {
      if (static_cast<int>(i) == state || !overlap(inputs[i], inputs[static_cast<size_t>(state)]) || is_state(i))
        continue;
      if (apart.empty()) apart.assign(inputs.begin(), inputs.end());
      if (apart[i] == inputs[i]) apart[i] = invoke_one(kCopy.op(), kCopy.op().default_params, {&inputs[i], 1});
    }
  }
  return apart;
}

}  // namespace hybridnet
