// Several elementwise nodes as one: a list of steps run over tiles that stay in the cache, so that only the inputs and
// the wanted results touch memory.
#pragma once

#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

struct PointwiseProgram {
  static constexpr size_t kMaxSteps = 64, kMaxInputs = 24, kMaxOperands = 16;  // operands: of one step
  struct Step {
    const Op* op = nullptr;
    ParamsPtr params;
    std::vector<int> in;  // slots: inputs of the node first, then one per step
  };
  DType dtype = DType::kFloat32;  // of inputs and results; every result has the shape that the inputs broadcast to
  int num_inputs = 0;
  std::vector<Step> steps;
  std::vector<int> outputs;    // slot of each output
  std::vector<int> memory_of;  // per output: the input whose memory it may take over, -1: none
};

// The op of such a node, called `_fused_elementwise`. It is not in the registry: only passes make it.
const Op& fused_elementwise_op();
ParamsPtr make_program_params(PointwiseProgram program);
bool same_program(const PointwiseProgram& a, const PointwiseProgram& b);

}  // namespace hybridnet
