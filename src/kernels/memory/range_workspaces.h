// Workspace memory for the concurrently running ranges of a parallel loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "hybridnet/threads.h"

namespace hybridnet::kernels {

class RangeWorkspaces {
 public:
  // The number of rooms that a loop of `items` needs on this machine; at most 64.
  static int count_for(int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min<int64_t>(items, cpu_cores()), 1, 64));
  }

  // Must live until the loop ends, which runs on no more cores than there are rooms. `memory`: count * bytes_each.
  RangeWorkspaces(void* memory, int64_t bytes_each, int count)
      : memory_(static_cast<char*>(memory)), bytes_each_(bytes_each), used_(count < 64 ? ~uint64_t{0} << count : 0) {
    if (current_cores() > count) fewer_cores_.emplace(count);
  }

  // A room in use while a range runs.
  class Use {
   public:
    explicit Use(RangeWorkspaces& rooms) : rooms_(rooms) {
      uint64_t used = rooms.used_.load(std::memory_order_relaxed);
      do {
        room_ = std::countr_one(used);
      } while (!rooms.used_.compare_exchange_weak(used, used | uint64_t{1} << room_, std::memory_order_acquire,
                                                  std::memory_order_relaxed));
    }
    ~Use() { rooms_.used_.fetch_and(~(uint64_t{1} << room_), std::memory_order_release); }
    Use(const Use&) = delete;
    char* memory() const { return rooms_.memory_ + room_ * rooms_.bytes_each_; }

   private:
    RangeWorkspaces& rooms_;
    int room_ = 0;
  };

 private:
  char* const memory_;
  const int64_t bytes_each_;
  std::atomic<uint64_t> used_;  // a bit per room; rooms that do not exist count as used
  std::optional<CoreScope> fewer_cores_;
};

}  // namespace hybridnet::kernels
