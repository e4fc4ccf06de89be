// Exclusive access for a reader of data: for changes that are no writes, but must not overlap with other accesses.
#pragma once

#include "engine/var_queue.h"

namespace hybridnet {

// For a task that reads `var` once: true if no other task accesses the variable or waits for it. Then no other access
// begins while this object lives.
class ExclusiveRead {
 public:
  explicit ExclusiveRead(Var& var) : var_(VarQueue::try_exclude_others(var) ? &var : nullptr) {}
  ~ExclusiveRead() {
    if (var_) VarQueue::admit_others(*var_);
  }
  ExclusiveRead(const ExclusiveRead&) = delete;
  explicit operator bool() const { return var_ != nullptr; }

 private:
  Var* const var_;
};

}  // namespace hybridnet
