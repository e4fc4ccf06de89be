// Variables that a task writes last, when nothing can fail any more.
#pragma once

#include <span>

#include "hybridnet/engine.h"

namespace hybridnet {

// While it lives, tasks that this thread pushes leave the errors that they throw, or that stop them, on their other
// variables: these stay sound, because such a task has not written to them. A task that writes nothing else leaves its
// error for wait_all().
class ErrorFreeWrites {
 public:
  explicit ErrorFreeWrites(std::span<Var* const> vars);
  ~ErrorFreeWrites();
  ErrorFreeWrites(const ErrorFreeWrites&) = delete;
  static std::span<Var* const> current();

 private:
  const std::span<Var* const> before_;
};

}  // namespace hybridnet
