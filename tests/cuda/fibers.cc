#include "fibers.h"

#include <sys/mman.h>

#include <set>
#include <tuple>
#include <vector>

#include "faults.h"
#include "fiber_switch.h"
#include "reports.h"

namespace standin {
namespace {

using hn_host::Exchange;
using hn_host::SharedFault;

constexpr unsigned kMostThreads = 1024;
constexpr size_t kStackBytes = 64 << 10, kGuardBytes = 4096;

enum class State : uint8_t { kReady, kAtBarrier, kInWarp, kDone };

struct Thread {
  Fiber fiber;
  bool prepared = false;
  State state = State::kReady;
  hn_host::Index3 index{};
  int line = 0;  // the line of the barrier or warp operation at which it waits
  Exchange kind = Exchange::kXor;
  unsigned mask = 0;
  uint64_t value = 0, result = 0;
  int operand = 0, width = 32;
};

// The block that runs.
struct Block {
  char* stacks = nullptr;
  std::vector<Thread> threads;
  unsigned count = 0;
  const hn_host::Kernel* kernel = nullptr;
  const void* arguments = nullptr;
  Thread* running = nullptr;
  std::string name;
  std::set<std::tuple<std::string, SharedFault>> reported;  // by this launch

  Block() : threads(kMostThreads) {
    void* at = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    stacks = static_cast<char*>(at);
    // A kernel with large local arrays meets these pages instead of another thread's stack.
    for (size_t t = 0; t < kMostThreads; ++t) mprotect(stacks + t * kStackBytes, kGuardBytes, PROT_NONE);
  }
};
Block& block() {
  static Block& it = *new Block;
  return it;
}

unsigned number_of(const Thread& thread) { return static_cast<unsigned>(&thread - block().threads.data()); }

std::string here() {
  const hn_host::Index3& at = block().kernel->builtins->block;
  return "kernel '" + block().name + "', block (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " +
         std::to_string(at.z) + ")";
}

void run_threads(void* argument) {
  auto& self = *static_cast<Thread*>(argument);
  while (true) {
    block().kernel->run(block().arguments, {}, {});
    self.state = State::kDone;
    self.fiber.pause();
  }
}

void wait_as(State state) {
  Thread& self = *block().running;
  self.state = state;
  self.fiber.pause();
}

void need_fiber(const char* word) {
  if (block().running) return;
  report("barrier: kernel '" + block().name + "' is declared by HN_KERNEL, and its threads use " + word +
         "; HN_BLOCK_KERNEL declares kernels whose threads cooperate");
  end_kernel(kLaunchFailed);
}

void barrier(int line) {
  need_fiber("__syncthreads");
  block().running->line = line;
  wait_as(State::kAtBarrier);
}

// The lane whose value a lane gets; itself if the wanted one is outside of its segment.
int source_lane(const Thread& thread, int lane) {
  const int segment = lane / thread.width * thread.width, end = segment + thread.width;
  int source = lane;
  switch (thread.kind) {
    case Exchange::kXor:
      source = lane ^ thread.operand;
      break;
    case Exchange::kDown:
      source = lane + thread.operand;
      break;
    case Exchange::kUp:
      source = lane - thread.operand;
      break;
    case Exchange::kIndex:
      return segment + (thread.operand & (thread.width - 1));
    default:
      break;
  }
  // An xor may reach into an earlier segment, as on a GPU.
  const int low = thread.kind == Exchange::kXor ? 0 : segment;
  return source < low || source >= end ? lane : source;
}

// All lanes of the mask have arrived: each gets its value.
void complete_exchange(unsigned warp, unsigned mask) {
  Thread* lanes = &block().threads[warp * 32];
  uint64_t ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1 && lanes[lane].value != 0) ballot |= uint64_t{1} << lane;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    Thread& thread = lanes[lane];
    const int source = source_lane(thread, lane);
    if ((mask >> source & 1) == 0)
      report("shuffle: " + here() + ": thread " + std::to_string(number_of(thread)) + " reads lane " +
             std::to_string(source) + ", which takes no part (line " + std::to_string(thread.line) + ")");
    thread.result = thread.kind == Exchange::kBallot ? ballot : lanes[source].value;
    thread.state = State::kReady;
  }
  if (lanes[__builtin_ctz(mask)].kind == Exchange::kWarpBarrier) ++services().warp_epoch[warp];
}

unsigned long long exchange(Exchange kind, unsigned mask, unsigned long long bits, int operand, int width, int line) {
  need_fiber("operations of a warp");
  Thread& self = *block().running;
  const unsigned number = number_of(self), warp = number / 32;
  const unsigned lanes = std::min(32u, block().count - warp * 32);
  if (lanes < 32) mask &= (1u << lanes) - 1;
  self.kind = kind, self.mask = mask, self.value = bits, self.operand = operand, self.width = width, self.line = line;
  self.state = State::kInWarp;
  bool all = true;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Thread& other = block().threads[warp * 32 + lane];
    if ((mask >> lane & 1) != 0) all = all && other.state == State::kInWarp && other.mask == mask && other.kind == kind;
  }
  if (all)
    complete_exchange(warp, mask);
  else
    self.fiber.pause();
  return self.result;
}

void shared_fault(const char* array, long long index, unsigned other, SharedFault fault) {
  if (!block().reported.emplace(array, fault).second) return;
  const std::string self = "thread " + std::to_string(services().thread);
  const std::string element = std::string(array) + "[" + std::to_string(index) + "]";
  std::string who = "thread " + std::to_string(other);
  if (other >= hn_host::kSeveralReaders)
    who = other == hn_host::kAtomicWriter ? "an atomic operation" : "several threads";
  const std::string since = " since the last barrier";
  std::string text;
  switch (fault) {
    case SharedFault::kReadAfterWrite:
      text = self + " reads " + element + ", which " + who + " wrote" + since;
      break;
    case SharedFault::kWriteAfterWrite:
      text = self + " writes " + element + ", which " + who + " wrote" + since;
      break;
    case SharedFault::kWriteAfterRead:
      text = self + " writes " + element + ", which " + who + " read" + since;
      break;
    case SharedFault::kNeverWritten:
      text = self + " reads " + element + ", which no thread wrote";
      break;
    case SharedFault::kOutOfRange:
      text = self + " accesses " + element + ", which is out of range";
      break;
  }
  report("shared memory race: " + here() + ": " + text);
}

void trap(const char* text) {
  report("trap: kernel '" + block().name + "': " + text);
  end_kernel(kLaunchFailed);
}

void set_graph_condition(unsigned long long handle, unsigned value) {
  World& w = world();
  if (w.conditions.count(handle) == 0) trap("it sets the condition of a graph, and there is none");
  if (!w.settable || w.settable->count(handle) == 0) trap("it sets the condition of a graph that it does not run in");
  w.conditions[handle] = value;
}

void resume(Thread& thread) {
  Block& b = block();
  b.running = &thread;
  b.kernel->builtins->thread = thread.index;
  services().thread = number_of(thread);
  thread.fiber.resume();
  b.running = nullptr;
}

// No thread can go on. True if all threads are at one barrier, which ends then.
bool pass_barrier() {
  Block& b = block();
  unsigned waiting = 0, in_warp = 0, ended = 0;
  const Thread *at_barrier = nullptr, *example = nullptr;
  bool one_line = true;
  for (unsigned t = 0; t < b.count; ++t) {
    const Thread& thread = b.threads[t];
    if (thread.state == State::kAtBarrier) {
      ++waiting;
      one_line = one_line && (!at_barrier || at_barrier->line == thread.line);
      at_barrier = at_barrier ? at_barrier : &thread;
    } else {
      ++(thread.state == State::kDone ? ended : in_warp);
      example = &thread;
    }
  }
  if (waiting == b.count && one_line) return true;
  std::string text = "barrier: " + here() + ": ";
  if (at_barrier)
    text += std::to_string(waiting) + " threads wait at the __syncthreads of line " + std::to_string(at_barrier->line);
  if (!one_line) text += " and of other lines";
  if (in_warp > 0) text += (at_barrier ? ", " : "") + std::to_string(in_warp) + " threads wait for lanes of their warp";
  if (example && ended > 0) text += ", and " + std::to_string(ended) + " threads have ended";
  if (example) text += "; for example thread " + std::to_string(number_of(*example));
  report(text);
  return false;
}

bool run_ready(const hn_host::Order& order, unsigned* done) {
  Block& b = block();
  bool any = false;
  unsigned t = static_cast<unsigned>(order.start);
  for (unsigned i = 0; i < b.count; ++i) {
    if (b.threads[t].state == State::kReady) {
      any = true;
      resume(b.threads[t]);
      if (b.threads[t].state == State::kDone) ++*done;
    }
    t += static_cast<unsigned>(order.stride);
    if (t >= b.count) t -= b.count;
  }
  return any;
}

void prepare_threads() {
  Block& b = block();
  const hn_host::Index3& size = b.kernel->builtins->block_dim;
  b.count = size.x * size.y * size.z;
  for (unsigned t = 0; t < b.count; ++t) {
    Thread& thread = b.threads[t];
    if (!thread.prepared) thread.fiber.prepare(b.stacks + t * kStackBytes, kStackBytes, run_threads, &thread);
    thread.prepared = true;
    thread.state = State::kReady;
    thread.index = {t % size.x, t / size.x % size.y, t / size.x / size.y};
  }
}

}  // namespace

hn_host::Services& services() {
  static hn_host::Services& it =
      *new hn_host::Services{barrier, exchange, shared_fault, trap, set_graph_condition, 0, 0, 0, {}};
  return it;
}

void begin_kernel(const std::string& name) {
  block().name = name;
  block().reported.clear();
  block().running = nullptr;
}

Result run_block(const hn_host::Kernel& kernel, const void* arguments, const hn_host::Order& threads) {
  Block& b = block();
  b.kernel = &kernel;
  b.arguments = arguments;
  prepare_threads();
  services().block_epoch = ++services().epoch;
  unsigned done = 0;
  while (done < b.count) {
    if (run_ready(threads, &done)) continue;
    if (!pass_barrier()) return kLaunchFailed;
    ++services().epoch;
    for (unsigned t = 0; t < b.count; ++t) b.threads[t].state = State::kReady;
  }
  return kSuccess;
}

bool is_end_of_stack(uintptr_t address) {
  const auto begin = reinterpret_cast<uintptr_t>(block().stacks);
  return address >= begin && address < begin + kMostThreads * kStackBytes;
}

void forget_fibers() {
  for (Thread& thread : block().threads) thread.prepared = false;
  block().running = nullptr;
}

}  // namespace standin
