#include "storage/recomputable.h"

#include "storage/system_memory.h"

namespace hybridnet {

void RecomputableArrays::add(void* data, int64_t bytes) {
  const Pages whole = whole_pages(data, bytes);
  arrays_.emplace_back(whole.data, whole.bytes);
}

void RecomputableArrays::drop(Array& array) noexcept {
  if (array.dropped || array.readers > 0 || !array.pages || array.kept.load(std::memory_order_relaxed)) return;
  drop_pages(array.pages, array.bytes);
  array.dropped = true;
}

void RecomputableArrays::drop(size_t array) noexcept {
  const std::lock_guard lock(mutex_);
  drop(arrays_[array]);
}

// The caller holds mutex_.
void RecomputableArrays::fill(size_t array) {
  if (!arrays_[array].dropped) return;
  std::vector<size_t> dropped;
  for (size_t i = 0; i < arrays_.size(); ++i)
    if (arrays_[i].dropped) dropped.push_back(i);
  compute(dropped);
  num_computed_.fetch_add(1, std::memory_order_relaxed);
  for (const size_t i : dropped) {
    arrays_[i].dropped = false;
    arrays_[i].restored = true;
  }
  any_restored_.store(true, std::memory_order_relaxed);
}

void RecomputableArrays::keep(size_t array) {
  const std::lock_guard lock(mutex_);
  fill(array);
  arrays_[array].kept.store(true, std::memory_order_release);
}

void RecomputableArrays::begin_reading(size_t array) {
  const std::lock_guard lock(mutex_);
  fill(array);
  ++arrays_[array].readers;
}

void RecomputableArrays::end_reading(size_t array) noexcept {
  const std::lock_guard lock(mutex_);
  --arrays_[array].readers;
}

void RecomputableArrays::drop_again() noexcept {
  if (!any_restored_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  any_restored_.store(false, std::memory_order_relaxed);
  for (Array& array : arrays_) {
    if (array.restored) drop(array);
    array.restored = false;
  }
}

}  // namespace hybridnet
