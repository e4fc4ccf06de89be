#include "ndarray/watched_array.h"

#include <cstring>
#include <utility>

#include "ndarray/given_out.h"

namespace hybridnet {

WatchedArray::WatchedArray(NDArray array, Compared compared) : array_(std::move(array)), compared_(compared) {
  remember();
}

bool WatchedArray::holds() {
  if (is_untouched()) return true;
  const std::lock_guard lock(mutex_);
  return still_holds();
}

bool WatchedArray::has_changed() {
  if (is_untouched()) return false;
  const std::lock_guard lock(mutex_);
  if (still_holds()) return false;
  // Values of the foreign memory that the tape has saved were overwritten, too.
  if (values_) chunk().overwrites.fetch_add(1, std::memory_order_relaxed);
  remember();
  return true;
}

// A check without a lock: true for the library's own memory if nothing was written and no memory was exported.
bool WatchedArray::is_untouched() const {
  return !has_values_.load(std::memory_order_acquire) &&
         overwrites_.load(std::memory_order_relaxed) == chunk().overwrites.load(std::memory_order_relaxed) &&
         given_out_.load(std::memory_order_relaxed) == times_given_out();
}

bool WatchedArray::still_holds() {
  if (values_) {
    array_.wait_to_read();
    return values_->empty() || std::memcmp(values_->data(), array_.data(), values_->size()) == 0;
  }
  if (overwrites_.load(std::memory_order_relaxed) != chunk().overwrites.load(std::memory_order_relaxed)) return false;
  // If the memory was exported meanwhile, outside code may have written it.
  const uint64_t given_out = times_given_out();
  if (!array_.is_sparse() && was_given_out_since(array_, given_out_.load(std::memory_order_relaxed))) return false;
  given_out_.store(given_out, std::memory_order_relaxed);
  return true;
}

void WatchedArray::remember() {
  overwrites_.store(chunk().overwrites.load(std::memory_order_relaxed), std::memory_order_relaxed);
  given_out_.store(times_given_out(), std::memory_order_relaxed);
  values_.reset();
  const bool compares =
      !array_.is_sparse() && chunk().is_foreign() && (compared_ == Compared::kAll || !may_change_unseen(array_));
  if (compares) {
    array_.wait_to_read();
    values_.emplace(static_cast<size_t>(array_.bytes()));
    if (!values_->empty()) std::memcpy(values_->data(), array_.data(), values_->size());
  }
  has_values_.store(compares, std::memory_order_release);
}

}  // namespace hybridnet
