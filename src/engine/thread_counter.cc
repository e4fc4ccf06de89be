#include "engine/thread_counter.h"

namespace hybridnet {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

thread_local ThreadCounter::Cache ThreadCounter::cache_{0, nullptr};

ThreadCounter::ThreadCounter() : id_(next_id()) {}

std::atomic<uint64_t>& ThreadCounter::find_cell() {
  const std::lock_guard lock(mutex_);
  Cell& cell = cells_[std::this_thread::get_id()];
  cache_ = {id_, &cell.count};
  return cell.count;
}

uint64_t ThreadCounter::total() const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [thread, cell] : cells_) sum += cell.count.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace hybridnet
