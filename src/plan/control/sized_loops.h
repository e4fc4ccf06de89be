// Loops at a cut (segments.h): loops with as many rows as iterations ran, with carries that change their shapes, or
// with bodies that have a cut of their own. Condition and body are graph functions with a plan per signature, and each
// run of them is a step on the tape, as in a user's loop over arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/control/rules.h"
#include "plan/control/control_kernel.h"
#include "plan/segments.h"

namespace hybridnet {

// One call of a loop.
class SizedLoop {
 public:
  // arguments: one per input of the node, kept by the caller.
  // key: of its random draws, so that a repeated run draws the same numbers.
  SizedLoop(SegmentedGraph& graph, const Node& node, std::span<const NDArray> arguments, RngKey key);
  // One result per output of the node.
  std::vector<NDArray> run();

 private:
  // A body that cannot be linked runs iteration by iteration; a while_loop with unbounded rows or gradient runs in
  // chunks, linked loops each twice as long as the one before; others are linked as a whole.
  enum class Mode : int8_t { kSteps, kChunks, kWhole };
  Mode mode() const;
  // The loop without carries that only grow (appended_carries.h); null: it has others.
  Ref<GraphCallable> appending_form();
  std::vector<NDArray> run_whole();
  int64_t run_steps();
  int64_t run_chunks();
  bool condition_holds(int64_t done);
  std::vector<NDArray> step(int64_t done);
  std::vector<NDArray> inputs_now() const;
  void take(std::span<const NDArray> results);
  void check(std::optional<BrokenRule> broken) const;
  Ref<GraphCallable> function_alone(int number, LoopSpec loop);
  std::vector<TensorSpec> output_specs() const;
  NDArray rows(size_t output, const TensorSpec& spec, int64_t size) const;
  Device device() const { return arguments_.empty() ? Device{} : arguments_[0].device(); }
  int64_t bytes_of_carries() const;
  int64_t bytes_of_rows() const;
  int64_t room_for_all() const;

  SegmentedGraph& graph_;
  const Node& node_;
  const LoopSpec& loop_;
  const bool is_while_;
  const std::span<const NDArray> arguments_;
  const RngKey key_;
  const LoopOrigin origin_;
  const std::vector<std::vector<bool>> free_;  // sizes of the carries that may change
  bool in_steps_ = false;
  int64_t limit_ = INT64_MAX;                    // maximum number of iterations
  std::vector<std::vector<NDArray>> sequences_;  // per sequence: its rows
  std::vector<NDArray> carries_;                 // current values
  std::vector<std::vector<NDArray>> pieces_;     // per output: rows of the iterations, or of the chunks
};

// The key of one run of a body, from that of its loop or branch: number tells the runs apart.
RngKey key_of_body_run(const RngKey& key, uint64_t number);

}  // namespace hybridnet
