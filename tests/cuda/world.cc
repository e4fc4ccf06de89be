#include "world.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "reports.h"

namespace standin {

thread_local Context* t_context = nullptr;

void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

World::World() {
  const int64_t seed = setting("HNSTANDIN_SEED", 0);
  random_order = seed != 0;
  random.seed(static_cast<uint64_t>(seed));
  for (int64_t device = 0; device < setting("HNSTANDIN_DEVICES", 1); ++device) {
    contexts.push_back(std::make_unique<Context>());
    contexts.back()->device = static_cast<int>(device);
    streams.push_back(std::make_unique<Stream>());
    streams.back()->number = static_cast<int>(device);
    streams.back()->context = contexts.back().get();
    default_streams.push_back(streams.back().get());
  }
}

World& world() {
  static World& it = []() -> World& {
    pthread_atfork([] { world().mutex.lock(); }, [] { world().mutex.unlock(); },
                   [] {
                     world().forked = true;
                     world().mutex.unlock();
                   });
    return *new World;
  }();
  return it;
}

namespace {
// The process ends: a real driver refuses calls from now on.
__attribute__((destructor)) void end() {
  World& w = world();
  if (w.forked) return;
  std::lock_guard lock(w.mutex);
  w.ended = true;
  if (setting("HNSTANDIN_LEAKS", 0) != 0) report_leaks(w);
}
}  // namespace

}  // namespace standin
