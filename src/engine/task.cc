#include "engine/task.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/early_writes.h"
#include "engine/error_free_writes.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

// initial-exec, because each inline run reads it: a call of __tls_get_addr would be a tenth of the run's cost.
thread_local int task_depth __attribute__((tls_model("initial-exec"))) = 0;

constexpr int64_t kMaxCoresWorthHaving = 4096;

bool has_duplicate(std::span<Var* const> reads, std::span<Var* const> writes) {
  std::vector<Var*> all(reads.begin(), reads.end());
  all.insert(all.end(), writes.begin(), writes.end());
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) != all.end();
}

bool has_duplicate_among_few(std::span<Var* const> reads, std::span<Var* const> writes) {
  for (size_t w = 0; w < writes.size(); ++w) {
    for (size_t other = w + 1; other < writes.size(); ++other) {
      if (writes[w] == writes[other]) return true;
    }
    if (std::find(reads.begin(), reads.end(), writes[w]) != reads.end()) return true;
  }
  for (size_t r = 0; r < reads.size(); ++r) {
    if (std::find(reads.begin() + r + 1, reads.end(), reads[r]) != reads.end()) return true;
  }
  return false;
}

}  // namespace

QueuedTask::QueuedTask(TaskFn task_fn, Engine::Access access, const Engine::Options& task_options)
    : fn(std::move(task_fn)), options(task_options), slot_count(access.reads.size() + access.writes.size()) {
  if (slot_count > kFewSlots) many_slots = std::make_unique<Slot[]>(slot_count);
  Slot* slot = slots().data();
  for (Var* var : access.reads) *slot++ = {.var = var, .task = this, .write = false};
  const std::span<Var* const> sound = ErrorFreeWrites::current();
  for (Var* var : access.writes) {
    const bool is_sound = std::find(sound.begin(), sound.end(), var) != sound.end();
    *slot++ = {.var = var, .task = this, .write = true, .keeps_errors = !is_sound};
  }
}

void check_access(const Engine::Access& access, const Engine::Options& options) {
  constexpr size_t kFew = 16;
  const bool few = access.reads.size() + access.writes.size() <= kFew;
  if (!(few ? has_duplicate_among_few : has_duplicate)(access.reads, access.writes)) return;
  throw EngineError({.op = options.name,
                     .message = "a variable is listed twice",
                     .because = "a task names each variable once, in reads or in writes",
                     .fix = "list a variable that is read and written in writes only",
                     .where = options.where});
}

int cores_worth_having(int64_t cost_ns) {
  const int64_t cores = cost_ns / static_cast<int64_t>(kNsWorthACore);  // the rule of kernels
  return cores < 2 ? 1 : static_cast<int>(std::clamp<int64_t>(cores, kSmallMachine, kMaxCoresWorthHaving));
}

namespace {
thread_local int run_here_depth = 0;
thread_local std::span<Var* const> sound_writes;
thread_local EarlyWrites* early_writes = nullptr;
}  // namespace

ErrorFreeWrites::ErrorFreeWrites(std::span<Var* const> vars) : before_(std::exchange(sound_writes, vars)) {}
ErrorFreeWrites::~ErrorFreeWrites() { sound_writes = before_; }
std::span<Var* const> ErrorFreeWrites::current() { return sound_writes; }

EarlyWrites* EarlyWrites::of_running_task() { return early_writes; }
EarlyWrites::Scope::Scope(EarlyWrites* writes) : before_(std::exchange(early_writes, writes)) {}
EarlyWrites::Scope::~Scope() { early_writes = before_; }

RunHereScope::RunHereScope() { ++run_here_depth; }
RunHereScope::~RunHereScope() { --run_here_depth; }
bool RunHereScope::active() { return run_here_depth > 0; }

UserCodeScope::UserCodeScope() : depth_(std::exchange(task_depth, 0)) {}
UserCodeScope::~UserCodeScope() { task_depth = depth_; }

void TaskScope::enter() { ++task_depth; }
void TaskScope::leave() { --task_depth; }
bool TaskScope::inside() { return task_depth > 0; }

void TaskScope::require_outside(const char* function) {
  if (!inside()) return;
  throw EngineError(
      {.message = std::string(function) + "() was called inside a task",
       .because = "a task that waits for others can wait for itself, and holds the worker they need",
       .fix = "name the variable among the task's reads; the engine then runs the task after its writers"});
}

}  // namespace hybridnet
