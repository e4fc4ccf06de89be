// What one signature of inputs compiles to: a forward plan and, when gradients are wanted, a backward plan.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/ndarray.h"
#include "kernels/indices.h"
#include "passes/gradient.h"
#include "passes/remat.h"
#include "plan/plan.h"

namespace hybridnet {

// A graph as callers see it: variables in a fixed order in, entries out.
struct GraphDefinition {
  std::vector<NodePtr> inputs;
  std::vector<NodeEntry> outputs;
  bool commits_writebacks = true;  // false: states keep their values (a forward run that is repeated)
  // After a call, these inputs hold these values, which are formed of what all inputs held before it.
  std::vector<Graph::Writeback> updates;
  bool atomic = false;            // a call that fails leaves every input as it was
  std::vector<uint8_t> donated;   // per input: results may be written into its memory; empty: none
  std::vector<uint8_t> borrowed;  // per output: calls may write it into memory that they keep; empty: none
  bool checked = false;           // arrays must be what the variables declare, all on one device

  std::vector<NodeEntry> roots() const;  // outputs, then the values of updates

  // The outputs as nodes over other inputs, which stand in the order of `inputs`.
  std::vector<Value> applied_to(std::span<const Value> values) const;
};

// What a caller wants of the gradient of an input.
enum Want : uint8_t { kNoGradient = 0, kGradient = 1, kGradientByRows = 2 };

struct CallSignature {
  std::vector<TensorSpec> inputs;
  std::vector<uint8_t> wants;  // Want per input; empty: none is wanted
  bool train = false;
  std::vector<uint8_t> heads;  // per output: does a gradient arrive there? Empty: at all outputs
  bool operator==(const CallSignature&) const = default;
};

struct CompileOptions {
  std::string name;
  Query query = Query::parse("");
  RematPolicy remat;
  bool keep_arena = false;
  bool weights_change = false;  // between calls for prediction, too: copies of them in other forms would not last
  bool wakes_team = true;       // calls come when the team sleeps
  Ref<ArenaPool> arenas;        // of all signatures
  Ref<KernelStore> kernels;     // the same, and of functions that are copies of each other; null: none
};

// One term of a gradient that is zeros but for some rows: output `values` of the backward plan holds them, output
// `rows` says which they are.
struct RowsOfGradient {
  int values = 0, rows = 0;
  kernels::IndexMode mode = kernels::IndexMode::kClip;  // of rows beyond the input
  bool operator==(const RowsOfGradient&) const = default;
};

class CompiledCall : public RefCounted<CompiledCall> {
 public:
  CallSignature signature;
  std::set<const Node*> unequal;  // branches that differ in size; not empty: no plan, the graph is cut there
  Ref<Plan> forward;
  Ref<Plan> prompt;    // GraphFunction::prompt_plan(); guarded by the function's mutex, null until asked for
  Ref<Plan> backward;  // null: no gradient reaches a wanted input, or none is wanted
  std::vector<BackwardInput> sources;  // of backward's inputs; kHead counts the outputs of the call
  std::vector<uint8_t> has_gradient;   // per output of forward; empty: no gradient is wanted
  std::vector<int> gradient_of_input;  // per input: output number of backward, -1: zero, unwanted or by rows
  std::vector<std::vector<RowsOfGradient>> rows_of_input;  // per input: terms of a gradient by rows
  PassReport report;
  std::vector<NDArray> borrowed;  // fresh arrays of forward that calls write again; guarded by the function's mutex
  int64_t held_bytes() const;     // without what it shares with calls for other sizes
};

// For these sizes the outputs of some branches differ in size (graph/control/unequal_branches.h).
class UnequalBranchesError : public ShapeError {
 public:
  explicit UnequalBranchesError(std::set<const Node*> branches)
      : ShapeError({.op = "_cond", .message = "the branches differ in size"}), branches(std::move(branches)) {}
  std::set<const Node*> branches;
};

// The graphs of a call, rewritten and differentiated; every value has a size.
struct RewrittenCall {
  Graph undifferentiated;              // what `joint` was made of; empty unless asked for
  Graph forward, backward;             // backward: empty if num_gradients is 0
  int num_residuals = 0;               // last outputs of forward, which backward reads
  int num_gradients = 0;               // outputs of backward
  std::vector<BackwardInput> sources;  // as in CompiledCall
  std::vector<uint8_t> has_gradient;   // as in CompiledCall
  std::vector<int> gradient_of_input;
  std::vector<std::vector<RowsOfGradient>> rows_of_input;
  PassReport report;
};
// Sees the joint graph (forward and gradients), before it is rewritten and cut.
using JointObserver = std::function<void(Graph& joint)>;
// Throws UnequalBranchesError, ShapeError when the inputs do not determine every spec, and whatever inference throws.
RewrittenCall rewrite_call(const GraphDefinition& definition, const CallSignature& signature,
                           const CompileOptions& options, bool keep_undifferentiated, const JointObserver& observe);
// What calls of one graph share, whatever its sizes are; backward: null as in CompiledCall.
struct LinkedCall {
  Ref<Plan::Linked> forward, backward;
};
// Throws whatever linking throws. Changes nothing in `rewritten`. `known`: what was linked of `rewritten` for other
// sizes, is used where it can be; empty: nothing.
Ref<CompiledCall> link_call(const RewrittenCall& rewritten, const GraphDefinition& definition,
                            const CallSignature& signature, const CompileOptions& options,
                            const LinkedCall& known = {});

// Differentiates a graph as rewrite_call does. asked: as in add_gradients.
void add_gradients_of_call(Graph& graph, const CallSignature& signature, const CompileOptions& options,
                           std::vector<AskedRule>* asked = nullptr);
// The same nodes, inputs, outputs and write-backs.
// states_as_outputs: new states become the last outputs instead of being written back.
// clones_of: receives what stands for each entry of the graph; may be null.
Graph copy_of(const Graph& graph, bool states_as_outputs = false, EntryMap* clones_of = nullptr);

// What the user and HYBRIDNET_PASSES ask for together. Throws ParamError for words that the pipeline does not know.
Query chosen_query(const std::string& passes);

// The gradients of definition's outputs with respect to the inputs that `wants` marks, as a graph of its own: inputs
// are those of the definition, then one head per output that has a gradient (`heads`: which outputs); outputs are the
// non-zero gradients (`of_inputs`: whose).
struct GradientDefinition {
  GraphDefinition graph;
  std::vector<int> heads, of_inputs;
};
// signature.heads: the outputs at which a gradient arrives; the others have no head.
GradientDefinition make_gradient_definition(const GraphDefinition& definition, const CallSignature& signature,
                                            const CompileOptions& options);

}  // namespace hybridnet
