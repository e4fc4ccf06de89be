// The arrays that a graph holds as constants. Compiling computes values from them and makes decisions by their values.
// Programs can still write to such an array; the compiled plans are stale then.
//
// Threads: calls may come from any thread.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ndarray/watched_array.h"
#include "plan/compilation.h"

namespace hybridnet {

class WatchedConstants {
 public:
  explicit WatchedConstants(const GraphDefinition& definition);
  // True if a constant was written since the last call or since construction. Foreign memory, whose writes are unknown,
  // is compared by its values.
  bool have_changed();
  // Waits until they are computed. Must not be called from engine tasks, because the tasks it waits for may wait for
  // the caller.
  void wait() const;
  // The dense constants: runs are ordered after earlier and before later writes to them. null: there are none.
  const std::shared_ptr<const std::vector<NDArray>>& arrays() const { return arrays_; }

 private:
  std::deque<WatchedArray> constants_;
  std::shared_ptr<const std::vector<NDArray>> arrays_;
  std::vector<NDArray> sparse_;
};

}  // namespace hybridnet
