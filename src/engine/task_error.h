// Errors of tasks that no wait has reported yet. Shared by both engines; guarded by their mutex.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "hybridnet/engine.h"

namespace hybridnet {

// One failure: shared by every variable that the failed task, or a task that depended on it, would have written.
struct TaskError {
  std::exception_ptr error;
  bool thrown = false;   // by a wait for one variable; wait_all() does not throw it again
  bool cleared = false;  // by wait_all(): variables that still hold it count as sound
};
using TaskErrorRef = std::shared_ptr<TaskError>;

// Called in a catch block: returns the current exception as a TaskError that names the task. Other exceptions than
// Error become an Error.
TaskErrorRef capture_task_error(const Engine::Options& options);

// Throws a copy of the error: several threads may throw the same failure at the same time, and a handler may add
// context to the Error that it catches.
[[noreturn]] void throw_copy(const TaskError& error);

// Every failure since the last wait_all(), oldest first.
class ErrorLedger {
 public:
  void add(TaskErrorRef error);
  // Clears all; returns the oldest that no wait has thrown, or null.
  TaskErrorRef clear();

 private:
  std::vector<TaskErrorRef> errors_;
};

}  // namespace hybridnet
