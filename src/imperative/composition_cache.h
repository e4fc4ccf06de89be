// What composed operators stood for in calls before. A rule sees parameters and the specs of inputs and nothing else,
// so in a call like one before it would emit the same operators: they are invoked without asking it again.
#pragma once

#include <span>
#include <vector>

#include "imperative/array_emitter.h"

namespace hybridnet {

// The operators that a rule emitted. Values are numbered: the inputs of the call, then what each step gave.
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

// Invokes what a rule emits, and notes it. Values live as long as the emitter.
class NotingEmitter final : public ArrayEmitter {
 public:
  explicit NotingEmitter(std::span<const Value> inputs);
  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override;
  // Of a rule that returned `results`; null where another call may go another way.
  Ref<const Composition> composition(size_t num_inputs, std::span<const Value> results) const;

 private:
  bool number_of(const Value& value, std::vector<uint32_t>* numbers) const;

  std::vector<Value> values_;
  std::vector<Composition::Step> steps_;
  bool repeatable_ = true;
};

// A call of a composed operator, as far as its rule sees it.
class ComposedCall {
 public:
  ComposedCall(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);
  // Null: none is kept. Valid until this thread keeps another composition: hold it where steps may be composed.
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
