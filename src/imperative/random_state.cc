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

RngKey rng_state() { return {g_seed.load(std::memory_order_relaxed), g_stream.load(std::memory_order_relaxed)}; }

void set_rng_state(RngKey next) {
  g_seed.store(next.seed, std::memory_order_relaxed);
  g_stream.store(next.stream, std::memory_order_relaxed);
}

void seed(uint64_t value) { set_rng_state({value, 0}); }

RngKey next_rng_key() {
  return {g_seed.load(std::memory_order_relaxed), g_stream.fetch_add(1, std::memory_order_relaxed)};
}

}  // namespace hybridnet
