// What tasks have thrown and no wait has reported yet. Shared by both engines; guarded by their mutex.
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

// Called in a catch block: the current exception as a TaskError that names the task. What is no Error becomes one.
TaskErrorRef capture_task_error(const Engine::Options& options);

// Every failure since the last wait_all(), oldest first.
class ErrorLedger {
 public:
  void add(TaskErrorRef error);
  // Clears all; the oldest that no wait has thrown, or null.
  std::exception_ptr clear();

 private:
  std::vector<TaskErrorRef> errors_;
};

}  // namespace hybridnet
