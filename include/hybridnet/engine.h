// Runs tasks as soon as the variables they touch allow it.
// Order:   two tasks sharing a variable, at least one of them writing it, run in push order; others may overlap.
// Errors:  an exception of a task is kept on the variables that the task writes and passes on to tasks that read or
//          write them. Those do not run. A write may be partial, so it does not clear the error. A wait on such a
//          variable rethrows it and clears it there; wait_all() rethrows the first error that no wait has thrown yet
//          and clears all of them.
// Threads: every member is safe from any thread; wait_* throws EngineError when called inside a task.
// Owner:   Runtime. Tests make their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {

class VarQueue;
struct Slot;
struct TaskError;
class WriteListener;

// Orders the tasks that access the same data. Embedded in the owner of the data (NDArray's storage); tasks keep it
// alive.
//
// state_ is the fast path without a lock. 0: idle; low bits count running readers; a bit marks a running writer; a bit
// says that tasks are queued (then everything goes through the mutex-guarded FIFO); a bit marks a stored error.
// Threads: every member is safe from any thread.
class Var {
 public:
  Var() = default;
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }  // number of finished or inline writes
  bool idle() const { return state_.load(std::memory_order_acquire) == 0; }      // nothing running or queued
  // True when no writer runs or waits and no error is stored: data may be read at once by the caller.
  bool readable() const;
  // The registered listener to writes (write_listener.h); null for none. May change while the data is read.
  std::atomic<WriteListener*>& write_listener() { return write_listener_; }

 private:
  friend class VarQueue;  // src/engine/var_queue.h: everything that engines do with a variable
  std::atomic<uint64_t> state_{0};
  std::atomic<uint64_t> version_{0};
  std::atomic<WriteListener*> write_listener_{nullptr};
  // Guarded by the engine's mutex:
  Slot* first_waiting_ = nullptr;
  Slot* last_waiting_ = nullptr;
  std::shared_ptr<TaskError> error_;
};

// The resources of a running task. Owner: the engine, until the task returns.
struct TaskContext {
  Device device;
  int cores = 1;  // how many cores it may use for parallel regions (see threads.h)
  bool inline_run = false;
};

// A unit of work. `keep_alive` (captured in fn) must own everything that the task and its variables need.
using TaskFn = std::function<void(TaskContext&)>;

class Engine {
 public:
  struct Access {
    std::span<Var* const> reads;  // no duplicates, disjoint from writes
    std::span<Var* const> writes;
  };
  struct Options {
    const char* name = "";  // static or interned string: named in errors and profiles
    Device device = {};
    int priority = 0;           // higher runs first among ready tasks
    int64_t cost_ns = 0;        // declared cost on one core; decides inline or queued
    int cores = 0;              // how many the task can use; 0: as many as its cost suggests
    SourceLocation where = {};  // user's line, from current_location(); unknown if the caller does not set it
  };

  virtual ~Engine() = default;  // finishes the pushed tasks

  // Returns at once. Throws EngineError if a variable is listed twice or in both lists.
  virtual void push(TaskFn fn, Access access, const Options& options) = 0;

  // Inline fast path: if every variable is free of conflicting work and of stored errors and options.cost_ns is small
  // (below the inline limit; a serial engine has none), acquires them and returns true; the caller then runs its work
  // on its own thread and MUST call finish_inline with the same access, also when the work throws: such an exception is
  // NOT stored, the caller throws it. Returns false without side effects otherwise; the caller then uses push.
  virtual bool try_begin_inline(Access access, const Options& options) = 0;
  virtual void finish_inline(Access access) = 0;

  // Wait until the tasks pushed before are done: those that access var, those that write var, all. Errors: see the top.
  virtual void wait_for_var(Var& var) = 0;
  virtual void wait_to_read(Var& var) = 0;
  virtual void wait_all() = 0;
  virtual bool has_pending() const = 0;  // true if a pushed task is not over; may be out of date on return
  // engine.bulk, a hint that many small tasks follow each other. MXNet collects them into one task; here cheap tasks
  // run inline anyway, so a size above 0 only raises the inline limit.
  virtual void set_bulk_size(int tasks) = 0;
  virtual int bulk_size() const = 0;
  virtual const char* type_name() const = 0;  // "ThreadedEnginePerDevice" or "NaiveEngine"
  // stop_workers(), before a fork: drains and stops workers (except inside a task, which cannot wait for itself).
  // start_workers(), after it, in parent and child: starts them again on demand; tasks pushed in between run then.
  // Registered by Runtime.
  virtual void stop_workers() = 0;
  virtual void start_workers() = 0;
  // Numbers of tasks since start that ran inline, were queued or failed, for tests and profiles.
  struct Counters {
    uint64_t inlined = 0, queued = 0, failed = 0;
  };
  virtual Counters counters() const = 0;
};

// The process' engine; Runtime installs it before anything runs.
Engine& engine();
void set_engine(Engine* e);

// While it lives, the thread runs user code, which may push work and wait for it although the thread is inside a task.
// Owner: a block of the thread; scopes end in reverse order.
class UserCodeScope {
 public:
  UserCodeScope();
  ~UserCodeScope();
  UserCodeScope(const UserCodeScope&) = delete;

 private:
  const int depth_;  // number of tasks around the scope
};

// While it lives, tasks of this thread may run inline at any cost, if their variables are free: for the parts of a
// task, whose variables no other thread uses.
// Owner: a block of the thread.
class RunHereScope {
 public:
  RunHereScope();
  ~RunHereScope();
  RunHereScope(const RunHereScope&) = delete;
  static bool active();
};

// The number of cores that an operator of this declared cost should request from CoreLease: 1 for a cheap one.
int cores_worth_having(int64_t cost_ns);
inline int cores_worth_having(const Engine::Options& options) {
  return options.cores > 0 ? options.cores : cores_worth_having(options.cost_ns);
}

std::unique_ptr<Engine> make_threaded_engine(int workers_per_device = 0);  // 0: from the core budget
std::unique_ptr<Engine> make_serial_engine();  // same promises on the caller's thread: debugging, tests

}  // namespace hybridnet
