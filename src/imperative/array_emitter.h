// Runs gradient rules and composition rules on arrays: each operator that a rule emits is invoked at once.
#pragma once

#include <span>
#include <vector>

#include "imperative/invoke.h"

namespace hybridnet {

// Records the emitted operators if the tape is recording. share_views: results of view ops may share memory with their
// input.
class ArrayEmitter : public Emitter {
 public:
  explicit ArrayEmitter(bool share_views) : share_views_(share_views) {}
  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override;
  TensorSpec spec(const Value& v) const override;

 protected:
  virtual void made(std::span<const NDArray> /*in*/, const NDArray& /*result*/) {}

 private:
  bool share_views_;
};

}  // namespace hybridnet
