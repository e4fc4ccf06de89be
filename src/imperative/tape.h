// The tape: what was run while recording, so that backward can run the gradient rules on it.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/imperative.h"

namespace hybridnet {

class TapeNode;

// Where an array stands: output `index` of `node`, or a leaf (no node) with a gradient buffer.
class TapeMark final : public TapeInfo {
 public:
  Ref<TapeNode> node;
  uint32_t index = 0;
  NDArray grad;  // leaves only
  GradReq req = GradReq::kNull;
  bool fresh = false;  // backward has written grad since this was last cleared
};

// One recorded step. Holds its inputs' marks (so the graph behind stays alive) and only the values its rule reads.
class TapeNode final : public RefCounted<TapeNode> {
 public:
  struct Saved {
    NDArray array;            // without tape mark of its own for outputs: the node would own itself
    uint64_t overwrites = 0;  // Chunk::overwrites when saved
  };
  struct Input {
    Ref<TapeMark> mark;  // null: constant
    TensorSpec spec;     // unknown where the array was pending
    Saved saved;
  };
  struct Output {
    TensorSpec spec;
    Saved saved;
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

inline TapeMark* mark_of(const NDArray& a) { return static_cast<TapeMark*>(a.impl()->tape.get()); }

}  // namespace hybridnet
