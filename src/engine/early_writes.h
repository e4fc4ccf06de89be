// Ends writes of a running task before the task ends: for a task that writes many arrays one after the other, such as
// gradients, whose readers need not wait for the last one.
// Owner:   the engine, while the task runs. Only engines with workers have one.
// Threads: the thread that runs the task.
#pragma once

#include "hybridnet/engine.h"

namespace hybridnet {

class EarlyWrites {
 public:
  // Lets the tasks that wait for the variable run. The task must have declared that it writes the variable, and uses
  // its data no longer. If the task fails later, the variable keeps no error.
  virtual void end(Var& var) = 0;
  // The writes of the task that this thread runs; null: there is none, or its engine ends all writes with the task.
  static EarlyWrites* of_running_task();

  class Scope {  // sets it
   public:
    explicit Scope(EarlyWrites* writes);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    EarlyWrites* const before_;
  };

 protected:
  ~EarlyWrites() = default;
};

}  // namespace hybridnet
