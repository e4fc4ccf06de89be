// A set of nodes that a compiler outside the library has taken over (passes/partition.h). The operators `_subgraph` and
// `_native_subgraph` run it as one instruction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

class BackendPart : public RefCounted<BackendPart> {
 public:
  struct Facts {
    std::string backend;              // name of the compiler
    std::string holds;                // names of its operators, for reports
    std::vector<TensorSpec> in, out;  // the specs that it was compiled for
    int64_t cost_ns = 0;              // estimated cost of the nodes on one core
    bool has_gradient = false;
    bool native = false;  // calls neither Python nor the library: it runs on any thread, on several at once
  };
  explicit BackendPart(Facts facts) : facts_(std::move(facts)) {}
  virtual ~BackendPart() = default;
  const Facts& facts() const { return facts_; }
  // Both write every element of out, and throw the errors of the backend.
  virtual void run(std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) = 0;
  // in: gradients of the outputs, inputs, outputs. out: gradients of the inputs.
  virtual void run_gradient(std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) = 0;

 private:
  const Facts facts_;
};

// Parameters of `_subgraph` and `_native_subgraph`. Passes make them; parsed from text they have no part, and then the
// outputs equal the inputs.
struct BackendUse {
  int32_t num_args = 0;
  std::string backend, holds;
  bool gradient = false;  // runs the gradient of the part: inputs are gradients of its outputs, its inputs, its outputs
  Ref<BackendPart> part;

  static BackendUse of(Ref<BackendPart> part, bool gradient);
  int num_outputs() const;
  static void describe(ParamSchema<BackendUse>& schema);
  void complete();  // throws ParamError if the text names a backend
  std::optional<AttrValue> written(const std::string&) const { return std::nullopt; }
  bool operator==(const BackendUse& other) const;
  uint64_t hash() const;
};

}  // namespace hybridnet
