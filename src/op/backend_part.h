// A set of nodes that a compiler outside the library has taken over (passes/partition.h): what the operators
// `_subgraph` and `_native_subgraph` run as one instruction.
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
    std::string backend;              // who compiled it
    std::string holds;                // names of the operators in it, for people
    std::vector<TensorSpec> in, out;  // what it was compiled for
    int64_t cost_ns = 0;              // what the nodes cost on one core, estimated
    bool has_gradient = false;
    bool native = false;  // calls nothing of Python and of the library: it runs on any thread, on several at once
  };
  explicit BackendPart(Facts facts) : facts_(std::move(facts)) {}
  virtual ~BackendPart() = default;
  const Facts& facts() const { return facts_; }
  // Write every element of out. Throw what the backend reports.
  virtual void run(std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) = 0;
  // in: gradients of the outputs, inputs, outputs. out: gradients of the inputs.
  virtual void run_gradient(std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) = 0;

 private:
  const Facts facts_;
};

// Parameters of `_subgraph` and `_native_subgraph`. Passes make them; read from text they name no part, and then the
// outputs are the inputs.
struct BackendUse {
  int32_t num_args = 0;
  std::string backend, holds;
  bool gradient = false;  // of the part: inputs are gradients of its outputs, its inputs, its outputs
  Ref<BackendPart> part;

  static BackendUse of(Ref<BackendPart> part, bool gradient);
  int num_outputs() const;
  static void describe(ParamSchema<BackendUse>& schema);
  void complete();  // throws ParamError where text names a backend
  std::optional<AttrValue> written(const std::string&) const { return std::nullopt; }
  bool operator==(const BackendUse& other) const;
  uint64_t hash() const;
};

}  // namespace hybridnet
