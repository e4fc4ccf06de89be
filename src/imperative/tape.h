// The tape: the steps that were recorded, so that backward can run the gradient rules on them.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "hybridnet/imperative.h"
#include "imperative/saved_array.h"

namespace hybridnet {

class TapeNode;

// The position of an array on the tape: output `index` of `node`, or a leaf (no node) with a gradient buffer.
class TapeMark final : public TapeInfo {
 public:
  Ref<TapeNode> node;
  uint32_t index = 0;
  NDArray grad;  // leaves only
  GradReq req = GradReq::kNull;
  bool fresh = false;      // backward has written grad since the flag was last cleared
  bool is_buffer = false;  // the array was made the gradient buffer of a leaf: break_cycles() reads this
  bool detached = false;   // constant even if other arrays write into its memory
  Ref<TapeMark> leaf;      // views only: the leaf whose memory they show
  // Leaves: the location that attached the gradient buffer. Constants: the location that overwrote them, if they were
  // not constants before.
  SourceLocation where;
  // The mark accounts for all writes into the memory up to this time (next_tape_time()). Not used in marks that steps
  // hold.
  std::atomic<uint64_t> time{0};

  bool is_leaf() const { return !node && req != GradReq::kNull; }
  const TapeMark* leaf_shown() const { return is_leaf() ? this : leaf.get(); }
};

// Returns a time that grows with each step and each write.
uint64_t next_tape_time();
Ref<TapeMark> make_mark(const Ref<TapeNode>& node, uint32_t index);  // the mark of the current values

// One recorded step. Holds its inputs' marks (so earlier steps stay alive) and only the values its rule reads.
class TapeNode final : public RefCounted<TapeNode> {
 public:
  struct Input {
    Ref<TapeMark> mark;  // null: constant
    TensorSpec spec;     // unknown where the array was pending
    SavedArray saved;
  };
  struct Output {
    TensorSpec spec;
    SavedArray saved;  // without the handle's mark: else the node would own itself
  };
  const Op* op = nullptr;  // null: the step is `function`
  Ref<RecordedFunction> function;
  ParamsPtr params;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  uint64_t sequence = 0;  // grows with time: backward runs from high to low
  bool train = false;
  bool released = false;
  bool is_sparse = false;  // its rule takes gradients and values in sparse storage
  SourceLocation where;

  std::string name() const;
  void free_saved();                    // not "release": that gives up a reference
  static void destroy(TapeNode* node);  // iterative: a long tape does not overflow the stack
};

void record_op(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::vector<NDArray>& outputs,
               bool is_sparse = false);
// Does the same in two parts, for a call that may write over its inputs: before it runs and afterwards. is_view: the
// output shows the memory of input 0 and nothing was written.
Ref<TapeNode> begin_record(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);
void end_record(const Ref<TapeNode>& node, std::span<const NDArray> inputs, std::vector<NDArray>& outputs,
                bool is_view = false);

// The part of note_overwrite() for the tape: overwritten values are constant until a step is recorded.
void forget_overwritten(const NDArray& array);
// The memory of an array is given to code outside of the library, which may write it. Values that were saved for
// gradients count as overwritten from then on. Gradients still go through the array, because it may keep its values.
void note_given_out(const NDArray& array);

// References are counted, so an object that holds itself is never freed. This can happen when a recorded result is
// written into an array of the caller: the array then holds the new step and all steps before it, and some of these may
// hold the array, as a saved value or as the gradient buffer of a leaf. In the first case the steps keep its memory
// without its handle from now on (the value is overwritten anyway). In the second case the result is not recorded: it
// is a gradient.
void break_cycles(std::span<const NDArray> given);

// Called by mark_variable() before `a` gets this mark with this gradient buffer. Throws ValueError if `a` would hold
// itself.
void require_other_gradient(const NDArray& a, const NDArray& grad, const TapeMark& mark);

// True if the array is the gradient buffer of a leaf.
bool is_gradient_buffer(const NDArray& array);

// op: the operator that writes, "" if unknown.
[[noreturn]] void throw_written_leaf(const std::string& op, const TapeMark& leaf, SourceLocation written);

// Makes the array a constant that is marked as a gradient buffer.
void keep_as_buffer(const NDArray& grad);

// The mark that was last set on the array. It may be stale after writes to other arrays of the memory.
inline TapeMark* own_mark_of(const NDArray& a) { return static_cast<TapeMark*>(a.impl()->tape.get()); }
TapeMark* current_mark_of(const NDArray& a);  // for memory with a history
// The mark of the array's current values; see write_history.h.
inline TapeMark* mark_of(const NDArray& a) {
  if (a.impl()->chunk->history.load(std::memory_order_acquire) != nullptr) [[unlikely]]
    return current_mark_of(a);
  return own_mark_of(a);
}
inline bool has_gradient(const TapeMark* mark) {
  // Values from a graph that a backward has freed are constants for later computations. MXNet does the same: states
  // carried from one training step to the next end the gradient there.
  return mark != nullptr && (mark->node ? !mark->node->released : mark->req != GradReq::kNull);
}

}  // namespace hybridnet
