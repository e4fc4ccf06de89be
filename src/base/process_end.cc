#include "base/process_end.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace hybridnet {
namespace {

struct Work {
  std::mutex mutex;
  std::vector<void (*)()> functions;
};

Work& work() {
  static auto* const one = new Work;  // never destroyed: it is read while static objects are destroyed
  return *one;
}

void (*take_last())() {
  Work& given = work();
  const std::lock_guard lock(given.mutex);
  if (given.functions.empty()) return nullptr;
  const auto last = given.functions.back();
  given.functions.pop_back();
  return last;
}

// pthread_exit() in the main thread runs the destructor, too: the other threads then run tasks in their waits.
struct EndOfMainThread {
  bool watched = false;
  ~EndOfMainThread() {
    if (watched) run_process_end();
  }
};

thread_local EndOfMainThread end_of_main_thread;

bool watch_main_thread() { return std::exchange(end_of_main_thread.watched, ::syscall(SYS_gettid) == ::getpid()); }

// The main thread of a program that is linked to this library runs this.
[[maybe_unused]] const bool watched_at_load = watch_main_thread();

}  // namespace

void at_process_end(void (*function)()) {
  [[maybe_unused]] static const int registered = std::atexit(run_process_end);
  Work& given = work();
  const std::lock_guard lock(given.mutex);
  given.functions.push_back(function);
}

void run_process_end() {
  while (const auto function = take_last()) function();
}

}  // namespace hybridnet
