#include <atomic>

#include "hybridnet/engine.h"

namespace hybridnet {
namespace {
std::atomic<Engine*> g_engine{nullptr};
}

Engine& engine() {
  Engine* e = g_engine.load(std::memory_order_acquire);
  if (!e) throw EngineError({.message = "the engine was used before Runtime::get()"});
  return *e;
}
void set_engine(Engine* e) { g_engine.store(e, std::memory_order_release); }

}  // namespace hybridnet
