// The state of the stand-in driver: devices, memory, streams with queued work, and who may have seen what (vector
// clocks). DEVICES.md 1.4 describes why.
// Owner:   world() lives until the process ends; objects keep their addresses, also after their destruction by the
//          caller, so that a stale handle is recognized.
// Threads: every function needs world().mutex, except where it says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace standin {

using Result = int;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4,
                 kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201, kIllegalState = 401,
                 kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kOutOfResources = 701,
                 kLaunchFailed = 719, kNotPermitted = 800, kNotSupported = 801, kCaptureUnsupported = 900,
                 kCaptureInvalidated = 901, kCaptureUnmatched = 903, kCaptureUnjoined = 904, kCaptureIsolation = 905,
                 kCapturedEvent = 907, kUnknown = 999;

// For each stream the number of its last work that is known to come before.
using Clock = std::vector<uint64_t>;
void join(Clock& clock, const Clock& other);
inline uint64_t at(const Clock& clock, size_t stream) { return stream < clock.size() ? clock[stream] : 0; }

struct Context {
  int device = 0;
  int retained = 0;
  int64_t used_bytes = 0;  // in pages of 4 KiB
};

struct Access {
  int stream;
  uint64_t ticket;
  int64_t begin, end;
  bool write;
  std::string name;
};

enum class Opened : uint8_t { kNo, kRead, kWrite };

// One allocation of device memory, with pages of its own between guard pages.
struct Allocation {
  uintptr_t address = 0;
  int64_t bytes = 0;
  uintptr_t pages = 0;
  int64_t page_bytes = 0;
  int device = 0;
  uint64_t number = 0;  // order of allocation
  Opened opened = Opened::kNo;
  std::vector<Access> accesses;  // those that later work must still be ordered with
  std::string freed_by;          // empty: alive
  bool free_queued = false;      // cuMemFreeAsync is in a stream
  Clock gone_after;              // the pages go back when each stream has done so much
};

struct Stream;
struct Launch;

// Something queued in a stream.
struct Work {
  std::string name;
  int stream = -1;
  uint64_t ticket = 0;
  Clock clock;
  std::function<Result(const Work&)> run;  // null: nothing to run
  std::shared_ptr<Launch> launch;          // a kernel
  Stream* waits_for = nullptr;             // with waits_ticket: not before that work of another stream
  uint64_t waits_ticket = 0;
};

// Host memory of cuMemHostAlloc.
struct PinnedMemory {
  int64_t bytes = 0;
  Clock used;  // the copies that use it
};

struct Graph;
struct Stream {
  int number = 0;
  Context* context = nullptr;
  bool destroyed = false;
  uint64_t pushed = 0, done = 0;
  Clock clock;  // the clock of the last pushed work
  std::deque<Work> queue;
  Graph* capture = nullptr;  // the graph that is being captured
};

struct Event {
  Context* context = nullptr;
  bool destroyed = false, recorded = false;
  Stream* stream = nullptr;
  uint64_t ticket = 0;
  Clock clock;
  Graph* captured_in = nullptr;
  size_t captured_lane = 0, captured_steps = 0;
};

struct Counters {
  int64_t launches = 0, bytes_in = 0, bytes_out = 0, allocations = 0, faults = 0, live_allocations = 0, live_bytes = 0;
  int64_t graph_launches = 0, nodes_set = 0, live_graphs = 0, rounds = 0;
  int64_t products = 0, tf32_products = 0, product_choices = 0, live_library_objects = 0;
  int64_t convolutions = 0, tf32_convolutions = 0, convolution_choices = 0;
};

struct World {
  std::mutex mutex;
  bool initialized = false, forked = false, ended = false;
  Result broken = kSuccess;  // a kernel failed: every later call fails with this
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Stream*> default_streams;         // by device
  std::set<Event*> events;                      // handles that exist or existed
  Clock known;                                  // work that the host has waited for
  std::map<uintptr_t, Allocation> allocations;  // by first page; freed ones until their pages go back
  std::vector<Allocation*> released;
  std::map<uintptr_t, PinnedMemory> pinned;
  std::map<unsigned long long, std::optional<unsigned>> conditions;  // values by handle; none: not set
  const std::set<unsigned long long>* settable = nullptr;            // conditions of the graph that runs
  Counters counters;
  std::mt19937_64 random;
  bool random_order = false;

  World();
};
World& world();
extern thread_local Context* t_context;  // set by cuCtxSetCurrent

// An integer from the environment, or a default.
int64_t setting(const char* name, int64_t otherwise);

}  // namespace standin
