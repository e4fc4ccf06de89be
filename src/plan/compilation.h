// The result of compiling one signature of inputs: a forward plan and, if gradients are wanted, a backward plan.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/ndarray.h"
#include "hybridnet/plan.h"
#include "kernels/index/indices.h"
#include "passes/gradient/gradient.h"
#include "passes/gradient/remat.h"
#include "plan/plan.h"

namespace hybridnet {

// A graph with an interface: variables in a fixed order as inputs, entries as outputs.
struct GraphDefinition {
  std::vector<NodePtr> inputs;
  std::vector<NodeEntry> outputs;
  bool commits_writebacks = true;  // false: states keep their values (a forward run that is repeated)
  // After a call, these inputs hold these values, which are computed from the values of all inputs before the call.
  std::vector<Graph::Writeback> updates;
  bool atomic = false;            // a call that fails leaves every input as it was
  std::vector<uint8_t> donated;   // per input: results may be written into its memory; empty: none
  std::vector<uint8_t> borrowed;  // per output: calls may write it into memory that they keep; empty: none
  bool checked = false;           // arrays must match the declarations of the variables and be on one device

  std::vector<NodeEntry> roots() const;  // outputs, then the values of updates

  // Returns the outputs as nodes over other inputs: `values`, in the order of `inputs`.
  std::vector<Value> applied_to(std::span<const Value> values) const;
};

// The form of an input's gradient that a caller wants.
enum Want : uint8_t { kNoGradient = 0, kGradient = 1, kGradientByRows = 2 };

struct CallSignature {
  std::vector<TensorSpec> inputs;
  std::vector<uint8_t> wants;  // Want per input; empty: none is wanted
  bool train = false;
  std::vector<uint8_t> heads;  // per output: 1 if a gradient arrives there; empty: at all outputs
  Device device = {};          // the GPU that holds the inputs, or any CPU
  bool operator==(const CallSignature&) const = default;
};

// The options of a call, parsed, and the memory and kernels that its plans share.
struct CompileOptions : CallOptions {
  CompileOptions() = default;
  CompileOptions(const CallOptions& asked);  // throws ParamError

  Plan::Options for_plan(Device device) const;

  Query query = Query::parse("");
  RematPolicy remat_policy;
  bool wakes_team = true;    // the team sleeps when a call begins
  Ref<ArenaPool> arenas;     // shared by all signatures
  Ref<KernelStore> kernels;  // shared by all signatures and by copies of the function; null: none
};

// One term of a gradient that is zero except for some rows: output `values` of the backward plan holds these rows,
// output `rows` their indices.
struct RowsOfGradient {
  int values = 0, rows = 0;
  kernels::IndexMode mode = kernels::IndexMode::kClip;  // for rows beyond the input
  bool operator==(const RowsOfGradient&) const = default;
};

class Compilation : public RefCounted<Compilation> {
 public:
  CallSignature signature;
  bool by_steps = false;  // no plan: a loop without a limit, whose gradient is wanted, runs step by step
  // The form in which calls of this signature run. Only kOnePlan has plans.
  enum class Form : int8_t {
    kOnePlan,
    kCutAtBranches,  // at `unequal`: branches whose outputs differ in size
    kBySteps,        // a gradient is wanted through a loop without a limit
  };
  Form form = Form::kOnePlan;
  std::set<const Node*> unequal;
  Ref<Plan> forward;
  Ref<Plan> awake;     // GraphCallable::awake_team_plan(); guarded by the function's mutex, null until asked for
  Ref<Plan> backward;  // null: no gradient reaches a wanted input, or none is wanted
  std::vector<BackwardInput> sources;  // one per input of backward; for kHead the index counts the outputs of the call
  std::vector<uint8_t> has_gradient;   // per output of forward; empty: no gradient is wanted
  std::vector<int> gradient_of_input;  // per input: output number of backward, -1: zero, unwanted or by rows
  std::vector<std::vector<RowsOfGradient>> rows_of_input;  // per input: terms of a gradient by rows
  PassReport report;
  std::vector<NDArray> borrowed;  // fresh arrays of forward that calls write again; guarded by the function's mutex
  int64_t held_bytes() const;     // without parts that calls for other sizes share
};

// For these sizes the outputs of some branches differ in size (graph/control/unequal_branches.h).
class UnequalBranchesError : public ShapeError {
 public:
  explicit UnequalBranchesError(std::set<const Node*> branches)
      : ShapeError({.op = "_cond", .message = "the branches differ in size"}), branches(std::move(branches)) {}
  std::set<const Node*> branches;
};

// The graphs of a call, rewritten and differentiated; every value has a size.
struct RewrittenGraphs {
  Graph undifferentiated;              // the graph from which `joint` was made; empty unless requested
  Graph forward, backward;             // backward: empty if num_gradients is 0
  int num_residuals = 0;               // number of the last outputs of forward that backward reads
  int num_gradients = 0;               // number of outputs of backward
  std::vector<BackwardInput> sources;  // see Compilation
  std::vector<uint8_t> has_gradient;   // see Compilation
  std::vector<int> gradient_of_input;
  std::vector<std::vector<RowsOfGradient>> rows_of_input;
  PassReport report;
};
// Throws the error of an input that an update and an operator write.
[[noreturn]] void throw_written_twice(const std::string& input);
// Throws ValueError if the program writes in place to a variable that an operator of the graph updates in this mode.
void check_writers(const GraphDefinition& definition, bool train);
// Receives the joint graph (forward and gradients) before it is rewritten and cut.
using JointObserver = std::function<void(Graph& joint)>;
// Throws UnequalBranchesError, ShapeError when the inputs do not determine every spec, and whatever inference throws.
RewrittenGraphs rewrite_graphs(const GraphDefinition& definition, const CallSignature& signature,
                               const CompileOptions& options, bool keep_undifferentiated, const JointObserver& observe);
// The linked parts that calls of one graph share for all sizes; backward: null as in Compilation.
struct LinkedPlans {
  Ref<Plan::Linked> forward, backward;
};
// Throws whatever linking throws. Changes nothing in `rewritten`. `known`: the result of linking `rewritten` for other
// sizes, which is used if possible; empty: none.
Ref<Compilation> link_compilation(const RewrittenGraphs& rewritten, const GraphDefinition& definition,
                                  const CallSignature& signature, const CompileOptions& options,
                                  const LinkedPlans& known = {});

// Differentiates a graph as rewrite_graphs does. asked: as in add_gradients.
void add_gradients_of_call(Graph& graph, const CallSignature& signature, const CompileOptions& options,
                           std::vector<AskedRule>* asked = nullptr);
// Returns a copy with the same nodes, inputs, outputs and write-backs.
// states_as_outputs: new states become the last outputs instead of being written back.
// clones_of: receives the clone of each entry of the graph; may be null.
Graph copy_of(const Graph& graph, bool states_as_outputs = false, EntryMap* clones_of = nullptr);

// Returns the passes that the user and HYBRIDNET_PASSES select together. Throws ParamError for words that the pipeline
// does not know.
Query chosen_query(const std::string& passes);

// The gradients of definition's outputs with respect to the inputs that `wants` marks, as a graph of its own. Its
// inputs are the inputs of the definition, then one head per output that has a gradient (`heads`: numbers of these
// outputs); its outputs are the non-zero gradients (`of_inputs`: numbers of their inputs).
struct GradientDefinition {
  GraphDefinition graph;
  std::vector<int> heads, of_inputs;
};
// signature.heads: the outputs at which a gradient arrives; the others have no head.
GradientDefinition make_gradient_definition(const GraphDefinition& definition, const CallSignature& signature,
                                            const CompileOptions& options);

}  // namespace hybridnet
