// The functions of OpenMP that oneDNN calls, under names of our own: an application in the same process keeps the
// OpenMP library that it was built with. cmake/rebind_dnnl.py writes these names into the copy of oneDNN beside
// libhybridnet.so. The functions are defined by the OpenMP specification 4.0, sections 2.7.1 (static schedules) and
// 3.2, and by the calls that GCC makes for the directives (libgomp, "Implementing ... directive").
#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "teams/region.h"

namespace hybridnet::teams {
namespace {

// Regions that the calling thread has opened and not closed (start and end are separate calls), in memory that is
// reused.
class OpenRegions {
 public:
  void open(int threads, Body body, void* data) {
    if (depth_ == memory_.size()) memory_.push_back(std::make_unique<Memory>());
    new (memory_[depth_]->bytes) Region(threads, body, data);
    ++depth_;
  }
  void close() {
    --depth_;
    auto* region = std::launder(reinterpret_cast<Region*>(memory_[depth_]->bytes));
    region->run_unstarted();
    region->~Region();
  }

 private:
  struct Memory {
    alignas(Region) unsigned char bytes[sizeof(Region)];
  };
  std::vector<std::unique_ptr<Memory>> memory_;
  size_t depth_ = 0;
};
thread_local OpenRegions open_regions;

// The iterations of a loop of the team that the calling thread runs next.
struct StaticLoop {
  long next = 0, end = 0;      // iterations, counted from 0
  long chunk = 0, stride = 0;  // size of a chunk, and distance from a chunk of this thread to its next
  long first = 0, step = 1;    // the value of the loop's variable: first + step * iteration
};
thread_local StaticLoop static_loop;

bool next_chunk(long* begin, long* end) {
  StaticLoop& loop = static_loop;
  if (loop.next >= loop.end) return false;
  const long last = std::min(loop.next + loop.chunk, loop.end);
  *begin = loop.first + loop.step * loop.next;
  *end = loop.first + loop.step * last;
  loop.next += loop.stride;
  return true;
}

}  // namespace
}  // namespace hybridnet::teams

using namespace hybridnet::teams;

extern "C" {

void HNTM_parallel_start(void (*body)(void*), void* data, unsigned threads) {
  const int wanted = threads == 0 ? most_threads() : static_cast<int>(threads);
  open_regions.open(in_team() ? 1 : wanted, body, data);
}

void HNTM_parallel_end() { open_regions.close(); }

void HNTM_barrier() {
  if (Team* team = membership().team) barrier(*team);
}

bool HNTM_loop_static_start(long first, long end, long step, long chunk, long* begin_of_chunk, long* end_of_chunk) {
  const long count =
      step > 0 ? std::max(0L, (end - first + step - 1) / step) : std::max(0L, (first - end - step - 1) / -step);
  const long threads = threads_of_team(), number = number_in_team();
  StaticLoop& loop = static_loop;
  if (chunk > 0) {
    loop = {chunk * number, count, chunk, chunk * threads, first, step};
  } else {  // one chunk for each thread, the first chunks hold one iteration more
    const long base = count / threads, longer = count % threads;
    const long begin = number * base + std::min(number, longer);
    const long mine = base + (number < longer ? 1 : 0);
    loop = {begin, begin + mine, std::max(mine, 1L), count + 1, first, step};
  }
  return next_chunk(begin_of_chunk, end_of_chunk);
}

bool HNTM_loop_static_next(long* begin, long* end) { return next_chunk(begin, end); }
void HNTM_loop_end_nowait() {}

int hnt_get_max_threads() { return most_threads(); }
int hnt_get_num_threads() { return threads_of_team(); }
int hnt_get_thread_num() { return number_in_team(); }
int hnt_in_parallel() { return in_team() ? 1 : 0; }
}
