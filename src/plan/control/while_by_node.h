// Loops with a condition whose outputs have as many rows as running tells, or whose variables change their shapes.
#pragma once

#include <span>
#include <vector>

#include "graph/control/control_flow.h"
#include "plan/control/control_kernel.h"
#include "plan/node_by_node.h"

namespace hybridnet {

// One call. Runs in chunks, compiled loops each twice as long as the one before, or (in_steps: the body cannot be
// linked, or its shapes change) iteration by iteration.
class WhileLoopByNode {
 public:
  WhileLoopByNode(NodeByNode& graph, const Node& node, std::span<const NDArray> arguments, bool in_steps);
  // False: the loop can be linked as a whole.
  bool is_needed(bool wants_gradient) const;
  std::vector<NDArray> run();

 private:
  std::vector<NDArray> inputs_now() const;
  bool condition_holds();
  int64_t run_chunks();
  int64_t run_steps();
  int64_t bytes_of_states() const;
  int64_t bytes_of_rows() const;
  int64_t room_for_all() const;
  Ref<GraphFunction> chunk_function(int level);
  std::vector<TensorSpec> output_specs() const;

  NodeByNode& graph_;
  const Node& node_;
  const LoopSpec& p_;
  const std::span<const NDArray> arguments_;
  const bool in_steps_;
  const LoopOrigin origin_;
  int64_t limit_ = INT64_MAX;
  std::vector<std::vector<NDArray>> pieces_;  // of each output: rows of the iterations, or of the chunks
  std::vector<NDArray> states_;               // the variables now
};

}  // namespace hybridnet
