// Runs a kernel text that g++ compiled with host_kernels.h: all blocks and threads in order, the threads of a block
// kernel as contexts that wait for each other. The text stands before this header. ptx_block.h does the same for PTX.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace host {

enum class State { kReady, kBarrier, kWarp, kDone };

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  hn_host::Index3 index{};
  State state = State::kReady;
  hn_host::Exchange kind{};
  unsigned mask = 0;
  unsigned long long value = 0, result = 0;
  int operand = 0, width = 32, line = 0;
};

constexpr size_t kStackBytes = 128 << 10;

inline std::vector<Thread> threads;
inline Thread* running = nullptr;
inline ucontext_t scheduler;
inline const hn_host::Kernel* kernel = nullptr;
inline const void* arguments = nullptr;
inline std::string fault;
inline hn_host::Services services{};

inline void stop(State state, int line) {
  running->state = state;
  running->line = line;
  swapcontext(&running->context, &scheduler);
}
inline void barrier(int line) { stop(State::kBarrier, line); }
inline unsigned long long exchange(hn_host::Exchange kind, unsigned mask, unsigned long long value, int operand,
                                   int width, int line) {
  running->kind = kind, running->mask = mask, running->value = value, running->operand = operand,
  running->width = width;
  stop(State::kWarp, line);
  return running->result;
}
inline void trap(const char* text) {
  fault = text;
  stop(State::kDone, 0);
}
inline void shared_fault(const char* array, long long index, unsigned thread, hn_host::SharedFault kind) {
  fault = std::string("shared array '") + array + "', element " + std::to_string(index) + ", thread " +
          std::to_string(thread) + ", fault " + std::to_string(static_cast<int>(kind));
}

inline unsigned long long exchanged(const Thread* lanes, unsigned lane, unsigned mask) {
  const Thread& t = lanes[lane];
  const int first = int(lane) / t.width * t.width, end = first + t.width;
  int source = int(lane);
  switch (t.kind) {
    case hn_host::Exchange::kXor:
      source ^= t.operand;
      break;
    case hn_host::Exchange::kDown:
      source += t.operand;
      break;
    case hn_host::Exchange::kUp:
      source -= t.operand;
      break;
    case hn_host::Exchange::kIndex:
      source = first + (t.operand & (t.width - 1));
      break;
    default: {
      unsigned long long ballot = 0;
      for (unsigned other = 0; other < 32; ++other) {
        if (mask >> other & 1 && lanes[other].value != 0) ballot |= 1ull << other;
      }
      return ballot;
    }
  }
  const int low = t.kind == hn_host::Exchange::kXor ? 0 : first;
  return lanes[source < low || source >= end ? int(lane) : source].value;
}

// Lets the lanes of a warp go on that have all arrived at one instruction.
inline bool meet(size_t first) {
  Thread* const lanes = &threads[first];
  const unsigned count = unsigned(threads.size() - first < 32 ? threads.size() - first : 32);
  bool met = false;
  for (unsigned leader = 0; leader < count; ++leader) {
    if (lanes[leader].state != State::kWarp) continue;
    unsigned wanted = 0, present = 0;
    const unsigned mask = lanes[leader].mask;
    for (unsigned lane = 0; lane < count; ++lane) {
      const Thread& t = lanes[lane];
      if (!(mask >> lane & 1) || t.state == State::kDone) continue;
      wanted |= 1u << lane;
      if (t.state == State::kWarp && t.kind == lanes[leader].kind && t.mask == mask) present |= 1u << lane;
    }
    if (present != wanted) continue;
    const bool is_barrier = lanes[leader].kind == hn_host::Exchange::kWarpBarrier;
    for (unsigned lane = 0; lane < count; ++lane) {
      if (present >> lane & 1) lanes[lane].result = exchanged(lanes, lane, present);
    }
    for (unsigned lane = 0; lane < count; ++lane) {
      if (present >> lane & 1) lanes[lane].state = State::kReady;
    }
    if (is_barrier) ++services.warp_epoch[first / 32];
    met = true;
  }
  return met;
}

inline void pass_barrier() {
  for (Thread& t : threads) {
    if (t.state != State::kBarrier && t.state != State::kDone) throw std::runtime_error("threads wait forever");
  }
  for (Thread& t : threads) {
    if (t.state == State::kBarrier) t.state = State::kReady;
  }
  ++services.epoch;
}

inline void run_thread() {
  kernel->run(arguments, {}, {});
  stop(State::kDone, 0);
}

inline void start_block(const hn_host::Index3& size) {
  threads.resize(size.x * size.y * size.z);
  services.block_epoch = ++services.epoch;
  for (size_t i = 0; i < threads.size(); ++i) {
    Thread& t = threads[i];
    if (!t.stack) t.stack.reset(new char[kStackBytes]);
    t.state = State::kReady;
    t.index = {unsigned(i % size.x), unsigned(i / size.x % size.y), unsigned(i / size.x / size.y)};
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.get();
    t.context.uc_stack.ss_size = kStackBytes;
    makecontext(&t.context, run_thread, 0);
  }
}

inline void run_block(const hn_host::Index3& size) {
  start_block(size);
  while (true) {
    bool all_done = true;
    for (size_t i = 0; i < threads.size(); ++i) {
      running = &threads[i];
      if (running->state == State::kReady) {
        kernel->builtins->thread = running->index;
        services.thread = unsigned(i);
        swapcontext(&scheduler, &running->context);
      }
      all_done = all_done && running->state == State::kDone;
    }
    if (all_done || !fault.empty()) return;
    bool met = false;
    for (size_t first = 0; first < threads.size(); first += 32) met = meet(first) || met;
    if (!met) pass_barrier();
  }
}

inline void launch(const hn_host::Index3& grid, const hn_host::Index3& block) {
  *kernel->services = &services;
  services.barrier = barrier, services.exchange = exchange, services.trap = trap, services.shared_fault = shared_fault;
  hn_host::Builtins& builtins = *kernel->builtins;
  builtins.grid_dim = grid, builtins.block_dim = block;
  if (!kernel->cooperates) return kernel->run(arguments, {0, 1}, {0, 1});
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x && fault.empty(); ++x) {
        builtins.block = {x, y, z};
        run_block(block);
      }
    }
  }
}

}  // namespace host

// Returns null, or the fault. geometry: blocks and threads along three axes.
extern "C" __attribute__((visibility("default"))) const char* host_launch(const hn_host::Kernel* kernel,
                                                                          const void* arguments,
                                                                          const unsigned* geometry) {
  host::kernel = kernel, host::arguments = arguments;
  host::fault.clear();
  try {
    host::launch({geometry[0], geometry[1], geometry[2]}, {geometry[3], geometry[4], geometry[5]});
  } catch (const std::exception& error) {
    host::fault = error.what();
  }
  return host::fault.empty() ? nullptr : host::fault.c_str();
}
