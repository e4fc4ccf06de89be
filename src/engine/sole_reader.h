// What only one reader does with data: no write, but nothing that others may meet.
#pragma once

#include "engine/var_queue.h"

namespace hybridnet {

// In a task that reads `var` once: true if no other task does, nor waits for the variable. Then none begins while this
// lives.
class SoleReader {
 public:
  explicit SoleReader(Var& var) : var_(VarQueue::try_exclude_others(var) ? &var : nullptr) {}
  ~SoleReader() {
    if (var_) VarQueue::admit_others(*var_);
  }
  SoleReader(const SoleReader&) = delete;
  explicit operator bool() const { return var_ != nullptr; }

 private:
  Var* const var_;
};

}  // namespace hybridnet
