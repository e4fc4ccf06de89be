#include <atomic>
#include <random>

#include "hybridnet/imperative.h"

namespace hybridnet {
namespace {

// Seeded from the system until the user seeds. A draw takes the next stream of the current seed.
std::atomic<uint64_t> g_seed{[] {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}()};
std::atomic<uint64_t> g_stream{0};

}  // namespace

void seed(uint64_t value) {
  g_seed.store(value, std::memory_order_relaxed);
  g_stream.store(0, std::memory_order_relaxed);
}

RngKey next_rng_key() {
  return {g_seed.load(std::memory_order_relaxed), g_stream.fetch_add(1, std::memory_order_relaxed)};
}

}  // namespace hybridnet
