// Several elementwise operators as one: a list of steps that runs over tiles in the cache, so that only the inputs and
// the wanted results are read from or written to memory. The parameters of `_fused_elementwise`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

struct PointwiseProgram {
  static constexpr size_t kMaxSteps = 64, kMaxInputs = 24, kMaxOperands = 16, kMaxOutputs = 16;  // operands per step
  struct Step {
    const Op* op = nullptr;
    ParamsPtr params;
    std::vector<int> in;  // slots: inputs of the node first, then one per step
  };
  int32_t num_inputs = 0;
  std::vector<Step> steps;
  std::vector<int> outputs;    // slot of each output
  std::vector<int> memory_of;  // per output: the input whose memory it may take over, -1: none
  bool native = false;         // may become machine code

  // "tanh(0); broadcast_mul(2, 1); _plus_scalar(3, scalar=1.0) -> 4@0, 2": the steps with the slots that they read and
  // their parameters, then the slots that are outputs, each with the input whose memory it may take over, if any.
  std::string text;      // the given text, until it is parsed; empty if a pass has made the steps
  bool is_read = false;  // the steps were parsed from text, and not checked against dtypes

  static void describe(ParamSchema<PointwiseProgram>& schema);
  void complete();  // parses `text`. Throws ParamError if it is no program
  std::optional<AttrValue> written(const std::string& field) const;
  bool operator==(const PointwiseProgram& other) const;
  uint64_t hash() const;
  // The last step that reads the slot; -1: none does.
  int last_reader(int slot) const;
};

}  // namespace hybridnet
