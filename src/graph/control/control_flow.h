// Loops and branches as nodes: parameters of _foreach, _while_loop and _cond, inference through their bodies, and how a
// body is cut out of the graph that a trace has made.
//
// Parameters say which input of the node (a number below "locs") feeds which input of a body; names and meaning are
// those of MXNet's symbol JSON (docs/formats.md). What MXNet does not have is left out of files when it has its
// default.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Body inputs: data_locs receive slices, state_locs the states, remain_locs captured values. Node inputs: data, states,
// captured, then the number of iterations if counted. Outputs: num_out_data stacked ones, then the final states.
struct ForeachParams {
  int32_t num_args = 0, num_outputs = 0, num_out_data = 0;
  OptionalInts in_data_locs, in_state_locs, remain_locs;
  bool reverse = false;
  bool scalar_slices = false;  // slices of 1-d data are 0-d, else (1,)
  bool counted = false;        // the last input holds the number of iterations, at most the length of the data
  int64_t length = -1;         // number of iterations of a loop without data
  int64_t truncate_gradient = 0, detach_every = 0;
  std::string checkpoint;
  static void describe(ParamSchema<ForeachParams>& schema);
};

// Loop variable i feeds the node input func_input_locs[func_var_locs[i]]. Outputs: num_out_data padded ones, the final
// variables, and one that front ends do not see: the number of iterations, int64. Padded outputs have max_iterations
// rows, or as many as the limit of this run says where the loop is unbounded.
struct WhileLoopParams {
  int32_t num_args = 0, num_outputs = 0, num_out_data = 0;
  int64_t max_iterations = 0;  // 0 with unbounded: no limit
  OptionalInts cond_input_locs, func_input_locs, func_var_locs;
  bool unbounded = false;
  bool limited = false;        // the last input holds the limit of this run, at most max_iterations (unless unbounded)
  bool scalar_slices = false;  // the number of iterations is 0-d, else (1,)
  bool exact = false;          // outputs have as many rows as there were iterations
  std::string on_limit;        // stop, warn, raise: what happens when the limit ends the loop
  OptionalInts free_axes;      // pairs (variable, axis): sizes that may change from iteration to iteration
  std::string checkpoint;
  static void describe(ParamSchema<WhileLoopParams>& schema);
};

// Outputs: those of both branches, then (made by gradients) then_extra that only the then branch gives and else_extra
// that only the other gives; what a branch that did not run would give is undefined.
struct CondParams {
  int32_t num_args = 0, num_outputs = 0, then_extra = 0, else_extra = 0;
  OptionalInts cond_input_locs, then_input_locs, else_input_locs;
  bool dynamic = false;  // sizes may differ between the branches
  static void describe(ParamSchema<CondParams>& schema);
};

enum class ControlKind : int8_t { kNone, kForeach, kWhileLoop, kCond };
ControlKind control_kind(const Op& op);
inline ControlKind control_kind(const Node& node) { return node.op ? control_kind(*node.op) : ControlKind::kNone; }

// Throws FormatError unless the attributes fit the node's inputs and bodies (files may say anything).
void check_control_node(const Node& node);

// Inference of one node, control flow included.
void infer_node(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train);

// Does only running the node tell the shapes of its outputs, or of values in its bodies?
bool has_dynamic_shape(const Node& node);
bool has_dynamic_body(const Node& node);
// Does max_iterations bound what a compiled gradient keeps, which has room for every iteration that may run? A limit
// that is only a safety net would take memory for iterations that never come.
bool is_bounded_for_gradient(const WhileLoopParams& params);
// Is the node a loop that nothing bounds for a gradient, or is there one in its bodies?
bool is_unbounded(const Node& node);
bool has_unbounded_body(const Node& node);
// Which sizes of each loop variable may change: true where they may. Empty for variables that keep their shape.
std::vector<std::vector<bool>> free_sizes(const WhileLoopParams& params);
// Does the node draw random numbers, itself or in a body?
bool is_random(const Node& node);
// Which stream of numbers a random node draws from; none: not numbered. What else a file may say there does not count.
std::optional<uint64_t> random_stream(const Node& node);
void set_random_stream(Node& node, uint64_t number);
// Does it draw what another node has drawn before (same stream), to have the value again?
bool repeats_draws(const Node& node);
void mark_as_repeating(Node& node, const Node& of);
// Does running it, or a body of it, call code outside the library?
bool is_opaque(const Node& node);
// Does it, or a body of it, read and write auxiliary states through this input?
bool is_auxiliary_input(const Node& node, size_t input);
// Inputs of this op, which takes any number of them, are auxiliary states from number count(params) on. For one op:
// Custom, whose code tells. op outlives all graphs; count may throw.
void count_arguments_by(const OpRef& op, int (*count)(const void* params));

// Value of a loop's parameter `checkpoint`: kept for the gradient are the states of every iteration, and what nodes of
// the body marked with this attribute give; the rest is computed again.
inline constexpr char kPolicy[] = "policy";
inline constexpr char kKeepAttribute[] = "__keep__";

// Attribute of a _while_loop that is a segment of a loop: the limit of that. The limit of this run, its last input, is
// what is left of it; only where that ends the segment has the loop reached its limit.
inline constexpr char kWholeLimitAttribute[] = "__whole_limit__";

// Where one loop or branch takes its body's inputs from: for body input k, the number of the node's input.
std::vector<int> body_sources(const Node& node, size_t body);

// The bodies of a node as text, indented; empty for other nodes.
std::string text_of_bodies(const Node& node);

// The spec of one slice of an array along axis 0.
TensorSpec slice_spec(const TensorSpec& array, bool scalar_slices);

// ------------------------------------------------------------------------------------------------------------ capture
struct CapturedBody {
  Ref<Subgraph> body;               // closed; inputs in the order in which the outputs reach them, unread slots last
  std::vector<int> slot_positions;  // per slot: its place among the inputs, -1: dropped because nothing reads it
  std::vector<NodeEntry> captured;  // values of the surrounding graph that the body reads ...
  std::vector<int> captured_positions;  // ... and their places
};
struct CaptureOptions {
  bool keep_unread_slots = true;
  bool hoist = false;                            // pure work that reads no slot stays outside
  std::function<bool(const Node*)> made_inside;  // was this node made while the body was traced?
};
// Copies what results need and slots feed. The surrounding graph is not changed.
CapturedBody capture_body(const std::vector<NodeEntry>& results, const std::vector<NodePtr>& slots,
                          const CaptureOptions& options);

// Parameters of one kind from another's fields, boxed.
template <typename P>
const P& params_of(const Node& node) {
  return node.params->as<P>();
}
std::vector<int> to_ints(const OptionalInts& list);
OptionalInts to_locs(const std::vector<int>& list);

}  // namespace hybridnet
