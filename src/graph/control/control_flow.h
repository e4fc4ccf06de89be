// Loops and branches as nodes: their parameters, inference through their bodies, and how a body is cut out of the graph
// that a trace has made.
//
// A *slot* is one value that passes from the node to its bodies. Slot k is input k of the node and input k of each of
// its bodies; a body that does not need the value has an unread input there. So one number names a slot everywhere.
// Files use MXNet's form instead: lists of indices (mxnet_form.h, docs/formats.md).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Parameters of _foreach and of _while_loop. Slots, in this order:
//   sequences  the node's input is an array, the input of an iteration one slice of it along axis 0 (_foreach only)
//   carries    the node's input is the initial value, the input of an iteration the result of the iteration before
//   invariants the input of every iteration is the node's input
// A counted loop has one more input, which the bodies do not see: the number of iterations of this run (_foreach, at
// most the length of the sequences), or the limit of this run (_while_loop, at most max_iterations).
// Outputs of the body: one row per stacked output, then the next value of each carry. Outputs of the node: the stacked
// rows, the final carries, and for a _while_loop the number of iterations (int64; front ends do not see it). Rows after
// the last iteration are zero.
struct LoopSpec {
  int32_t num_args = 0;  // inputs of the node
  int32_t num_seq = 0, num_carry = 0, num_out = 0;
  bool reverse = false;        // the last slice comes first
  bool scalar_slices = false;  // slices of vectors and the number of iterations are 0-d, else (1,)
  bool counted = false;
  std::optional<int64_t> length;          // _foreach without sequences: number of iterations
  std::optional<int64_t> max_iterations;  // _while_loop; none: only the limit of the run
  bool exact = false;                     // stacked outputs have as many rows as there were iterations
  std::string on_limit = "stop";          // stop, warn, raise: the action when the limit ends the loop
  OptionalInts free_axes;                 // pairs (carry, axis): sizes that may change from iteration to iteration
  int64_t truncate_gradient = 0;          // gradients flow through the last this many iterations; 0: all
  int64_t detach_every = 0;               // gradients of carries stop after every this many iterations; 0: never
  std::string checkpoint;                 // policy for the values kept for the gradient
  // For a loop that is a segment of another loop: row r begins at iteration draw_offset + r * draw_stride of the
  // original loop. Random draws use these iteration numbers.
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

// Parameters of _cond. Its bodies are predicate, then branch and else branch. Outputs: num_out outputs that both
// branches have, then (made by gradients) then_extra outputs of the then branch alone and else_extra outputs of the
// else branch alone. Extra outputs of the branch that did not run are undefined.
struct BranchSpec {
  int32_t num_args = 0;  // inputs of the node, each a slot
  int32_t num_out = 0;   // outputs of both branches
  int32_t then_extra = 0, else_extra = 0;
  bool dynamic = false;       // the sizes of the outputs are known only at run time
  bool strict_shape = false;  // branches whose outputs differ in size are an error
  static void describe(ParamSchema<BranchSpec>& schema);

  size_t outs() const { return static_cast<size_t>(num_out); }
  int32_t num_outputs() const { return num_out + then_extra + else_extra; }
  // Returns the index of the node's output for output `output` of a branch (0: then, 1: else).
  size_t output_of(size_t branch, size_t output) const {
    return output + (branch == 1 && output >= outs() ? static_cast<size_t>(then_extra) : 0);
  }
  size_t outputs_of(size_t branch) const { return outs() + static_cast<size_t>(branch == 0 ? then_extra : else_extra); }
};

enum class ControlKind : int8_t { kNone, kForeach, kWhileLoop, kCond };
ControlKind control_kind(const Op& op);
inline ControlKind control_kind(const Node& node) { return node.op ? control_kind(*node.op) : ControlKind::kNone; }

// Infers the specs of one node, control flow included.
void infer_node(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train);

// True if the shapes of the node's outputs, or of values in its bodies, are known only at run time.
bool has_dynamic_shape(const Node& node);
bool has_dynamic_body(const Node& node);
// True if max_iterations is a good bound for the buffers of a compiled gradient, which have room for every possible
// iteration. With a limit that is only a safety net they would take memory for iterations that never run.
bool is_bounded_for_gradient(const LoopSpec& loop);
// True if the node is a _while_loop that is not bounded for a gradient, or (has_unbounded_body) has one in its bodies.
bool is_unbounded(const Node& node);
bool has_unbounded_body(const Node& node);
// Returns a mask per carry: true for axes whose sizes may change. Empty for carries that keep their shape.
std::vector<std::vector<bool>> free_sizes(const LoopSpec& loop);
// True if the node or a node in its bodies draws random numbers.
bool is_random(const Node& node);
// Returns the number of the stream that a random node draws from; none if not numbered, or if the attribute (read from
// a file) is not a number.
std::optional<uint64_t> random_stream(const Node& node);
void set_random_stream(Node& node, uint64_t number);
void clear_random_stream(Node& node);
// Stream number of a loop that is a segment: it draws from the stream of the enclosing loop.
inline constexpr uint64_t kStreamOfLoopAround = UINT64_MAX;
// True if the node repeats the draws of another node (same stream) to recompute its value.
bool repeats_draws(const Node& node);
void mark_as_repeating(Node& node, const Node& of);
// True if the node, or a node in its bodies, calls code outside the library.
bool is_opaque(const Node& node);
// True if the node, or a node in its bodies, reads and writes this input as an auxiliary state.
bool is_auxiliary_input(const Node& node, size_t input);
// Declares that the inputs of this variadic operator are auxiliary states from index count(params) on. For one
// operator: Custom, whose user code defines the number. op outlives all graphs; count may throw.
void count_arguments_by(const OpRef& op, int (*count)(const void* params));

// Value of a loop's parameter `checkpoint`: the states of every iteration, and the outputs of body nodes with the
// attribute kKeepAttribute, are kept for the gradient; the rest is computed again.
inline constexpr char kPolicy[] = "policy";
inline constexpr char kKeepAttribute[] = "__keep__";

// Attribute of a _while_loop that is a segment of a loop: the limit of the whole loop. The limit of the segment's run,
// its last input, is the rest of that limit; the loop has reached its limit only if the rest ends the segment.
inline constexpr char kWholeLimitAttribute[] = "__whole_limit__";

// Attribute of loops that may become machine code: the rewrite native_loops sets it, linking reads it.
inline constexpr char kNativeAttribute[] = "__native__";

// Returns per input of a body: true if the body reads it.
std::vector<bool> read_inputs(const Subgraph& body);
// Returns per slot of a node a mask: bit b is set if body b reads the slot.
std::vector<int> bodies_reading(const Node& node);
// Returns the slot that is the predicate of a _cond; -1 if a body computes the predicate.
int direct_predicate(const Node& node);
// Returns the number of iterations of a _foreach without sequences, or with a first input of this spec (the maximum if
// counted).
int64_t rows_of(const LoopSpec& loop, const TensorSpec& first);

// Returns the bodies of a node as text, indented; empty for nodes without bodies.
std::string text_of_bodies(const Node& node);

// Returns the spec of one slice of an array along axis 0.
TensorSpec slice_spec(const TensorSpec& array, bool scalar_slices);

// ---------------------------------------------------------------------------------------------------- capture
struct CapturedBody {
  Ref<Subgraph> body;               // closed; inputs: the slots, then the captured values
  std::vector<NodeEntry> captured;  // values of the surrounding graph that the body reads
};
struct CaptureOptions {
  bool hoist = false;                            // pure nodes that depend on no slot stay outside
  std::function<bool(const Node*)> made_inside;  // true for nodes made while the body was traced
};
// Copies the nodes of the body, which results depend on. The surrounding graph is not changed.
CapturedBody capture_body(const std::vector<NodeEntry>& results, const std::vector<NodePtr>& slots,
                          const CaptureOptions& options);

// A body and the values for its inputs.
struct BoundBody {
  Ref<Subgraph> body;
  std::vector<NodeEntry> outside;
};
// Gives all bodies of one node the node's inputs. inputs: the first values; the other values that the bodies read are
// appended. The first `fixed` inputs of each body keep their positions; equal values after them share one input.
void bind_bodies(std::vector<NodeEntry>& inputs, std::span<BoundBody> bodies, size_t fixed = 0);
// Makes an input of a body for this value.
NodePtr body_variable(const NodeEntry& outside);

inline const LoopSpec& loop_of(const Node& node) { return node.params->as<LoopSpec>(); }
inline const BranchSpec& branch_of(const Node& node) { return node.params->as<BranchSpec>(); }
inline ParamsPtr boxed(LoopSpec spec) { return ParamSchema<LoopSpec>::box(std::move(spec)); }
inline ParamsPtr boxed(BranchSpec spec) { return ParamSchema<BranchSpec>::box(std::move(spec)); }

}  // namespace hybridnet
