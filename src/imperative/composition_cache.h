// Keeps the operators that composed operators were expanded to. A composition rule sees only the parameters and the
// specs of the inputs, so it would emit the same operators for an equal call: these are invoked without running the
// rule again.
#pragma once

#include <span>
#include <vector>

#include "imperative/array_emitter.h"

namespace hybridnet {

// The operators that a rule emitted. Values are numbered: the inputs of the call first, then the outputs of each step.
struct Composition final : RefCounted<Composition> {
  struct Step {
    const Op* op;
    ParamsPtr params;
    std::vector<uint32_t> inputs;
  };
  std::vector<Step> steps;
  std::vector<uint32_t> results;
  bool is_one_call = false;  // one step, whose inputs and results are those of the composed operator
};

// Invokes the operators that a rule emits, and notes them. Values live as long as the emitter.
class NotingEmitter final : public ArrayEmitter {
 public:
  explicit NotingEmitter(std::span<const Value> inputs);
  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override;
  // The composition of a rule that returned `results`; null if an equal call might emit other operators.
  Ref<const Composition> composition(size_t num_inputs, std::span<const Value> results) const;

 private:
  bool number_of(const Value& value, std::vector<uint32_t>* numbers) const;

  std::vector<Value> values_;
  std::vector<Composition::Step> steps_;
  bool repeatable_ = true;
};

// A call of a composed operator, reduced to the properties that its rule sees.
class ComposedCall {
 public:
  ComposedCall(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);
  // Null: none is kept. Valid until this thread keeps another composition: hold a reference if steps may be composed.
  const Composition* find() const;
  void keep(Ref<const Composition> composition) const;

 private:
  const Op& op_;
  const ParamsPtr& params_;
  std::span<const NDArray> inputs_;
  bool train_, np_shape_;
  uint64_t hash_;
};

}  // namespace hybridnet
