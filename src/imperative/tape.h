// The tape: what was run while recording, so that backward can run the gradient rules on it.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "hybridnet/imperative.h"
#include "imperative/saved_array.h"

namespace hybridnet {

class TapeNode;

// Where an array stands: output `index` of `node`, or a leaf (no node) with a gradient buffer.
class TapeMark final : public TapeInfo {
 public:
  Ref<TapeNode> node;
  uint32_t index = 0;
  NDArray grad;  // leaves only
  GradReq req = GradReq::kNull;
  bool fresh = false;      // backward has written grad since this was last cleared
  bool is_buffer = false;  // the array was made the gradient buffer of a leaf: break_cycles() looks at it
  bool detached = false;   // a constant whatever is written into its memory through other arrays
  Ref<TapeMark> leaf;      // of views: the leaf that they show
  // Of leaves: where they got their gradient buffer. Of constants: where they were overwritten, if they were none
  // before.
  SourceLocation where;
  // Writes into the memory up to this time (tape_time) are known to the mark. Not for the marks that steps hold.
  std::atomic<uint64_t> time{0};

  bool is_leaf() const { return !node && req != GradReq::kNull; }
  const TapeMark* leaf_shown() const { return is_leaf() ? this : leaf.get(); }
};

// Grows with each step and each write.
uint64_t next_tape_time();
Ref<TapeMark> make_mark(const Ref<TapeNode>& node, uint32_t index);  // of the values as they are now

// One recorded step. Holds its inputs' marks (so the graph behind stays alive) and only the values its rule reads.
class TapeNode final : public RefCounted<TapeNode> {
 public:
  struct Input {
    Ref<TapeMark> mark;  // null: constant
    TensorSpec spec;     // unknown where the array was pending
    SavedArray saved;
  };
  struct Output {
    TensorSpec spec;
    SavedArray saved;  // without the handle's mark: the node would own itself
  };
  const Op* op = nullptr;  // or:
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
// The same in two parts, for a call that may write over its inputs: before it runs and afterwards. is_view: the output
// shows the memory of input 0 and nothing was written.
Ref<TapeNode> begin_record(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);
void end_record(const Ref<TapeNode>& node, std::span<const NDArray> inputs, std::vector<NDArray>& outputs,
                bool is_view = false);

// What note_overwrite means for the tape: values that were overwritten are constant until a step is recorded.
void forget_overwritten(const NDArray& array);
// The memory of an array is given to code outside of the library, which may write it. Values that were saved for
// gradients count as overwritten from then on. Gradients still go through the array, because it may keep its values.
void note_given_out(const NDArray& array);

// References are counted, so what holds itself is never freed. That threatens where a recorded result is written into
// an array of the caller: the array then holds the new step and all that it stems from, and some of these may hold the
// array, as a value that they saved or as the gradient buffer of a leaf. The former keep its memory without its handle
// from now on (the value is overwritten anyway). In the latter case the result is not recorded: it is a gradient.
void break_cycles(std::span<const NDArray> given);

// For mark_variable, which gives `a` this mark with this gradient buffer: throws ValueError where `a` would hold
// itself.
void require_other_gradient(const NDArray& a, const NDArray& grad, const TapeMark& mark);

// Is the array the gradient buffer of a leaf?
bool is_gradient_buffer(const NDArray& array);

// op: the operator that writes, "" where it is not known.
[[noreturn]] void throw_written_leaf(const std::string& op, const TapeMark& leaf, SourceLocation written);

// Makes an array a constant that is known as a gradient buffer.
void keep_as_buffer(const NDArray& grad);

// The mark as it was set, which other arrays may have overtaken.
inline TapeMark* own_mark_of(const NDArray& a) { return static_cast<TapeMark*>(a.impl()->tape.get()); }
TapeMark* current_mark_of(const NDArray& a);  // of memory with a history
// What the values of the array stem from; see write_history.h.
inline TapeMark* mark_of(const NDArray& a) {
  if (a.impl()->chunk->history.load(std::memory_order_acquire) != nullptr) [[unlikely]]
    return current_mark_of(a);
  return own_mark_of(a);
}
inline bool has_gradient(const TapeMark* mark) {
  // What stems from a graph that a backward has freed is a constant for what is computed from now on, as in MXNet:
  // states carried from one training step to the next end the gradient there.
  return mark != nullptr && (mark->node ? !mark->node->released : mark->req != GradReq::kNull);
}

}  // namespace hybridnet
