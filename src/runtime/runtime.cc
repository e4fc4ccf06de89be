#include "hybridnet/runtime.h"

#include <pthread.h>

#include "base/interrupt.h"
#include "base/process_end.h"
#include "cuda/backend.h"
#include "device/pinned.h"
#include "device/pool.h"
#include "device/stream.h"
#include "engine/run_ahead.h"
#include "hybridnet/env.h"
#include "hybridnet/threads.h"
#include "ops/register_all.h"
#include "storage/pinned_storage.h"

namespace hybridnet {

struct Runtime::Parts {
  std::unique_ptr<Storage> cpu_storage;
  std::unique_ptr<Engine> engine;
  OpRegistry ops;
};

namespace {

std::unique_ptr<Engine> make_engine() {
  const std::string& type = environment().engine_type;
  if (type == "NaiveEngine") return make_serial_engine();
  if (type.empty() || type == "ThreadedEnginePerDevice" || type == "ThreadedEngine")
    return make_threaded_engine(environment().workers);
  throw ValueError({.input = "HYBRIDNET_ENGINE_TYPE",
                    .expected = "ThreadedEnginePerDevice, ThreadedEngine or NaiveEngine",
                    .given = "'" + type + "'"});
}

Engine* g_fork_engine = nullptr;
Storage* g_fork_storage = nullptr;

void before_fork() {
  {
    const RunAhead::FrontEndPause pause(run_ahead());
    g_fork_engine->stop_workers();
  }
  g_fork_storage->before_fork();
  device::before_fork();
}

void after_fork_in_parent() {
  device::after_fork();
  g_fork_storage->after_fork(/*in_child=*/false);
  g_fork_engine->start_workers();
}

void after_fork_in_child() {
  threads_after_fork_in_child();
  device::after_fork();
  g_fork_storage->after_fork(/*in_child=*/true);
  run_ahead().forget_after_fork();
  g_fork_engine->start_workers();
}

}  // namespace

Runtime::Runtime() : parts_(std::make_unique<Parts>()) {
  parts_->cpu_storage = make_cpu_storage();
  set_cpu_storage(parts_->cpu_storage.get());
  device::set_backend_maker(&cuda::make_cuda_backend);
  set_gpu_storage(&device::storage_of);
  set_pinned_storage(&device::pinned_storage);
  parts_->engine = make_engine();
  set_engine(parts_->engine.get());
  ops::register_all(parts_->ops);
  parts_->ops.seal();
  set_op_registry(&parts_->ops);
  // A forked child has none of the parent's threads: workers stop before the fork and start again, on demand, in both
  // processes.
  g_fork_engine = parts_->engine.get();
  g_fork_storage = parts_->cpu_storage.get();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

Runtime& Runtime::get() {
  // Never destroyed: arrays in other static objects may be freed after main() and still need storage. Pending work is
  // finished at exit.
  static Runtime* runtime = [] {
    auto* r = new Runtime;
    at_process_end([] { get().shutdown(); });
    return r;
  }();
  return *runtime;
}

Runtime::~Runtime() = default;

Engine& Runtime::engine() { return *parts_->engine; }
Storage& Runtime::storage(Device device) { return hybridnet::storage(device); }
const OpRegistry& Runtime::ops() { return parts_->ops; }
void Runtime::extend_ops(std::vector<std::unique_ptr<Op>> ops) { parts_->ops.extend(std::move(ops)); }

void Runtime::shutdown() {
  // Runs only once: tasks pushed after the first shutdown need a front end that may be gone by now.
  if (run_ahead().waits_no_more()) return;
  note_exit();
  try {
    parts_->engine->wait_all();
  } catch (const std::exception&) {
    // Ignored: the process is ending.
  }
  run_ahead().stop_waiting();  // tasks pushed from now on stay queued until a wait runs them
  parts_->engine->stop_workers();
}

}  // namespace hybridnet
