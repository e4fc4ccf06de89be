// What one signature of inputs compiles to: a forward plan and, when gradients are wanted, a backward plan.
#pragma once

#include <string>
#include <vector>

#include "passes/gradient.h"
#include "plan/plan.h"

namespace hybridnet {

// A graph as callers see it: variables in a fixed order in, entries out.
struct GraphDefinition {
  std::vector<NodePtr> inputs;
  std::vector<NodeEntry> outputs;
  bool commits_writebacks = true;  // false: states keep their values (a forward run that is repeated)

  // The outputs as nodes over other inputs, which stand in the order of `inputs`.
  std::vector<Value> applied_to(std::span<const Value> values) const;
};

struct CallSignature {
  std::vector<TensorSpec> inputs;
  std::vector<uint8_t> wants;  // per input: is its gradient wanted? Empty: none is
  bool train = false;
  bool operator==(const CallSignature&) const = default;
};

struct CompileOptions {
  std::string name;
  std::string passes;
  bool keep_arena = false;
  Ref<ArenaPool> arenas;  // of all signatures
  bool by_node = false;  // never compile: each call has other shapes
};

class CompiledCall : public RefCounted<CompiledCall> {
 public:
  CallSignature signature;
  Ref<Plan> forward;
  Ref<Plan> backward;                  // null: no gradient reaches a wanted input, or none is wanted
  std::vector<BackwardInput> sources;  // of backward's inputs; kHead counts the outputs of the call
  std::vector<int> gradient_of_input;  // per input: output number of backward, -1: zero or unwanted
  PassReport report;
  std::string graph_text;
  int64_t held_bytes() const;
};

// Throws ShapeError when the inputs do not determine every spec, and whatever inference and linking throw.
Ref<CompiledCall> compile_call(const GraphDefinition& definition, const CallSignature& signature,
                               const CompileOptions& options);

// The gradients of definition's outputs with respect to the inputs that `wants` marks, as a graph of its own: inputs
// are those of the definition, then one head per floating output (`heads`: which outputs); outputs are the non-zero
// gradients
// (`of_inputs`: whose).
struct GradientDefinition {
  GraphDefinition graph;
  std::vector<int> heads, of_inputs;
};
GradientDefinition make_gradient_definition(const GraphDefinition& definition, const CallSignature& signature,
                                            const CompileOptions& options);

}  // namespace hybridnet
