// The tape: what was run while recording, so that backward can run the gradient rules on it.
#pragma once

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
};

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

// Makes an array a constant that is known as a gradient buffer.
void keep_as_buffer(const NDArray& grad);

inline TapeMark* mark_of(const NDArray& a) { return static_cast<TapeMark*>(a.impl()->tape.get()); }

}  // namespace hybridnet
