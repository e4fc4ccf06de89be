#include "cuda/process_state.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

// A flag that the fork sets costs a launch nothing; getpid() is a system call.
std::atomic<bool> forked{false};
std::atomic<bool> ending{false};

}  // namespace

void watch_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    std::atexit([] { ending.store(true, std::memory_order_relaxed); });
  });
}

bool process_is_forked() { return forked.load(std::memory_order_relaxed); }
bool process_is_ending() { return ending.load(std::memory_order_relaxed); }

void throw_forked() {
  throw EngineError({.message = "CUDA cannot be used after fork",
                     .because = "the parent process had used the GPU, and the driver does not work in its children",
                     .fix =
                         "start processes with spawn: multiprocessing.set_start_method('spawn'); keep the workers of a "
                         "DataLoader on the CPU"});
}

}  // namespace hybridnet::cuda
