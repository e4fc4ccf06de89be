// The arrays that a graph holds as constants: compiling computes values from them, and decides by them. Programs can
// write to such an array all the same; what was compiled is stale then.
//
// Threads: from any.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ndarray/watched_array.h"
#include "plan/compiled_call.h"

namespace hybridnet {

class WatchedConstants {
 public:
  explicit WatchedConstants(const GraphDefinition& definition);
  // Since this was last asked, or since it was made. Of foreign memory, whose writes are unknown, the values tell.
  bool have_changed();
  // Until they are computed. Not from tasks of the engine: what they wait for may wait for the task.
  void wait() const;
  // Dense ones, which runs are ordered behind and before the writes to. null: there are none.
  const std::shared_ptr<const std::vector<NDArray>>& arrays() const { return arrays_; }

 private:
  std::deque<WatchedArray> constants_;
  std::shared_ptr<const std::vector<NDArray>> arrays_;
  std::vector<NDArray> sparse_;
};

}  // namespace hybridnet
