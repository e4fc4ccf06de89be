// Loops and branches as nodes: their parameters, inference through their bodies, and how a body is cut out of the graph
// that a trace has made.
//
// A *slot* is one value that passes from the node to its bodies. Slot k is input k of the node and input k of each of
// its bodies; a body that does not need the value has an input there that nothing reads. So one number names a slot
// everywhere. Files hold what MXNet's do instead: lists of indices (mxnet_form.h, docs/formats.md).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Parameters of _foreach and of _while_loop. Slots, in this order:
//   sequences  the node gets an array, an iteration one slice of it along axis 0 (_foreach only)
//   carries    the node gets the initial value, an iteration what the one before it returned
//   invariants each iteration gets what the node gets
// A counted loop has one more input, which the bodies do not see: the number of iterations of this run (_foreach, at
// most the length of the sequences), or the limit of this run (_while_loop, at most max_iterations).
// Outputs of the body: one row per stacked output, then the next value of each carry. Outputs of the node: the stacked
// rows, the final carries, and of a _while_loop the number of iterations (int64; front ends do not see it). Rows behind
// the last iteration are zero.
struct LoopSpec {
  int32_t num_args = 0;  // inputs of the node
  int32_t num_seq = 0, num_carry = 0, num_out = 0;
  bool reverse = false;        // the last slice comes first
  bool scalar_slices = false;  // slices of vectors and the number of iterations are 0-d, else (1,)
  bool counted = false;
  std::optional<int64_t> length;          // _foreach without sequences: number of iterations
  std::optional<int64_t> max_iterations;  // _while_loop; none: no limit but that of the run
  bool exact = false;                     // stacked outputs have as many rows as there were iterations
  std::string on_limit = "stop";          // stop, warn, raise: what happens when the limit ends the loop
  OptionalInts free_axes;                 // pairs (carry, axis): sizes that may change from iteration to iteration
  int64_t truncate_gradient = 0;          // gradients flow through the last so many iterations; 0: all
  int64_t detach_every = 0;               // gradients of carries stop at every so many iterations; 0: never
  std::string checkpoint;                 // what is kept for the gradient
  // Of a loop that was cut into segments: row r begins at iteration draw_offset + r * draw_stride of the loop as it was
  // written. Random draws follow these numbers.
  int64_t draw_offset = 0, draw_stride = 1;
  static void describe(ParamSchema<LoopSpec>& schema);

  size_t seqs() const { return static_cast<size_t>(num_seq); }
  size_t carries() const { return static_cast<size_t>(num_carry); }
  size_t outs() const { return static_cast<size_t>(num_out); }
  size_t slots() const { return static_cast<size_t>(num_args) - (counted ? 1 : 0); }
  size_t carry(size_t i) const { return seqs() + i; }  // slot of carry i
  size_t first_invariant() const { return carry(carries()); }
  size_t final_carry(size_t i) const { return outs() + i; }  // output of the body and of the node
};

// Parameters of _cond. Its bodies are predicate, then branch and else branch. Outputs: those of both branches, then
// (made by gradients) then_extra of the then branch alone and else_extra of the else branch alone; what the branch that
// did not run would give is undefined.
struct BranchSpec {
  int32_t num_args = 0;  // inputs of the node, each a slot
  int32_t num_out = 0;   // outputs of both branches
  int32_t then_extra = 0, else_extra = 0;
  bool dynamic = false;       // only running tells the sizes of the outputs
  bool strict_shape = false;  // branches whose outputs differ in size are an error
  static void describe(ParamSchema<BranchSpec>& schema);

  size_t outs() const { return static_cast<size_t>(num_out); }
  int32_t num_outputs() const { return num_out + then_extra + else_extra; }
  // Output of the node that output `output` of a branch (0: then, 1: else) is.
  size_t output_of(size_t branch, size_t output) const {
    return output + (branch == 1 && output >= outs() ? static_cast<size_t>(then_extra) : 0);
  }
  size_t outputs_of(size_t branch) const { return outs() + static_cast<size_t>(branch == 0 ? then_extra : else_extra); }
};

enum class ControlKind : int8_t { kNone, kForeach, kWhileLoop, kCond };
ControlKind control_kind(const Op& op);
inline ControlKind control_kind(const Node& node) { return node.op ? control_kind(*node.op) : ControlKind::kNone; }

// Inference of one node, control flow included.
void infer_node(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train);

// Does only running the node tell the shapes of its outputs, or of values in its bodies?
bool has_dynamic_shape(const Node& node);
bool has_dynamic_body(const Node& node);
// Does max_iterations bound what a compiled gradient keeps, which has room for every iteration that may run? A limit
// that is only a safety net would take memory for iterations that never come.
bool is_bounded_for_gradient(const LoopSpec& loop);
// Is the node a loop that nothing bounds for a gradient, or is there one in its bodies?
bool is_unbounded(const Node& node);
bool has_unbounded_body(const Node& node);
// Which sizes of each carry may change: true where they may. Empty for carries that keep their shape.
std::vector<std::vector<bool>> free_sizes(const LoopSpec& loop);
// Does the node draw random numbers, itself or in a body?
bool is_random(const Node& node);
// Which stream of numbers a random node draws from; none: not numbered. What else a file may say there does not count.
std::optional<uint64_t> random_stream(const Node& node);
void set_random_stream(Node& node, uint64_t number);
void clear_random_stream(Node& node);
// Number of the stream of a loop that is a segment: it draws from the stream of the loop around it.
inline constexpr uint64_t kStreamOfLoopAround = UINT64_MAX;
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

// Attribute of loops that may become machine code: the rewrite native_loops sets it, linking reads it.
inline constexpr char kNativeAttribute[] = "__native__";

// Per input of a body: does the body read it?
std::vector<bool> read_inputs(const Subgraph& body);
// Per slot of a node: bit b is set if body b reads it.
std::vector<int> bodies_reading(const Node& node);
// The slot that a _cond has as its predicate; -1: a body computes it.
int direct_predicate(const Node& node);
// Number of iterations of a _foreach without sequences, or with a first input of this spec (at most, if counted).
int64_t rows_of(const LoopSpec& loop, const TensorSpec& first);

// The bodies of a node as text, indented; empty for other nodes.
std::string text_of_bodies(const Node& node);

// The spec of one slice of an array along axis 0.
TensorSpec slice_spec(const TensorSpec& array, bool scalar_slices);

// ---------------------------------------------------------------------------------------------------- capture
struct CapturedBody {
  Ref<Subgraph> body;               // closed; inputs: the slots, then what is captured
  std::vector<NodeEntry> captured;  // values of the surrounding graph that the body reads
};
struct CaptureOptions {
  bool hoist = false;                            // pure work that reads no slot stays outside
  std::function<bool(const Node*)> made_inside;  // was this node made while the body was traced?
};
// Copies what results need and slots feed. The surrounding graph is not changed.
CapturedBody capture_body(const std::vector<NodeEntry>& results, const std::vector<NodePtr>& slots,
                          const CaptureOptions& options);

// A body and the values that its inputs get.
struct BoundBody {
  Ref<Subgraph> body;
  std::vector<NodeEntry> outside;
};
// Gives the bodies of one node the same inputs, those of the node. inputs: the first values, to which are added those
// that the bodies read. The first `fixed` inputs of each body stay in their places; equal values behind them are one.
void bind_bodies(std::vector<NodeEntry>& inputs, std::span<BoundBody> bodies, size_t fixed = 0);
// An input of a body that gets this value.
NodePtr body_variable(const NodeEntry& outside);

inline const LoopSpec& loop_of(const Node& node) { return node.params->as<LoopSpec>(); }
inline const BranchSpec& branch_of(const Node& node) { return node.params->as<BranchSpec>(); }
inline ParamsPtr boxed(LoopSpec spec) { return ParamSchema<LoopSpec>::box(std::move(spec)); }
inline ParamsPtr boxed(BranchSpec spec) { return ParamSchema<BranchSpec>::box(std::move(spec)); }

}  // namespace hybridnet
