// A pushed task, its slots in the queues of its variables, and whether the calling thread runs a task.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "hybridnet/engine.h"

namespace hybridnet {

struct QueuedTask;

// One access of one task (or of a wait) to one variable; a link in the variable's FIFO while it waits there.
struct Slot {
  Var* var = nullptr;
  QueuedTask* task = nullptr;  // null: a wait, see WaitMarker
  Slot* next = nullptr;
  bool write = false;
  bool keeps_errors = true;  // those of the task, if it writes; see ErrorFreeWrites
  bool ended = false;        // before the task; see EarlyWrites
};

struct QueuedTask {
  QueuedTask(TaskFn fn, Engine::Access access, const Engine::Options& options);

  std::span<Slot> slots() { return {many_slots ? many_slots.get() : few_slots.data(), slot_count}; }

  TaskFn fn;
  Engine::Options options;
  uint64_t sequence = 0;  // push order, set by the pool when the task is ready
  int waiting = 0;        // slots not granted yet; guarded by the engine's mutex
  int generation = 0;     // see Pending

 private:
  static constexpr size_t kFewSlots = 6;
  size_t slot_count;
  std::array<Slot, kFewSlots> few_slots;
  std::unique_ptr<Slot[]> many_slots;
};

// Throws EngineError if a variable is listed twice or in both lists.
void check_access(const Engine::Access& access, const Engine::Options& options);

// Marks the calling thread as running a task. A wait for other tasks could never end there.
class TaskScope {
 public:
  TaskScope() { enter(); }
  ~TaskScope() { leave(); }
  TaskScope(const TaskScope&) = delete;

  static void enter();
  static void leave();
  static bool inside();
  static void require_outside(const char* function);  // throws EngineError inside a task
};

}  // namespace hybridnet
