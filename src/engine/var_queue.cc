#include "engine/var_queue.h"

#include <utility>

namespace hybridnet {

bool Var::readable() const { return VarQueue::idle_for_readers(*this); }

bool VarQueue::take_or_mark(const Slot& slot, bool mark) noexcept {
  const bool takes = slot.task != nullptr;
  std::atomic<uint64_t>& word = slot.var->state_;
  uint64_t state = word.load(std::memory_order_acquire);
  while (true) {
    const bool granted = (state & kQueued) == 0 && compatible(state, slot.write);
    if (granted ? !takes : !mark) return granted;
    const uint64_t next = granted ? state + (slot.write ? kWriter : 1) : state | kQueued;
    if (word.compare_exchange_weak(state, next, std::memory_order_acq_rel, std::memory_order_acquire)) return granted;
  }
}

bool VarQueue::try_acquire(const Slot& slot) { return take_or_mark(slot, /*mark=*/false); }

bool VarQueue::acquire_or_enqueue(Slot& slot) noexcept {
  if (take_or_mark(slot, /*mark=*/true)) return true;
  Var& var = *slot.var;
  slot.next = nullptr;
  (var.first_waiting_ == nullptr ? var.first_waiting_ : var.last_waiting_->next) = &slot;
  var.last_waiting_ = &slot;
  return false;
}

void VarQueue::dispatch(Var& var, std::vector<QueuedTask*>& ready) {
  if ((var.state_.load(std::memory_order_acquire) & kQueued) == 0) return;
  while (Slot* slot = var.first_waiting_) {
    // While kQueued is set no other thread acquires. A thread that ends an access meanwhile dispatches again.
    if (!compatible(var.state_.load(std::memory_order_acquire), slot->write)) return;
    var.first_waiting_ = slot->next;
    if (slot->task == nullptr) {
      WaitMarker* marker = static_cast<WaitMarker*>(slot);
      marker->done.store(true, std::memory_order_release);
      marker->signaled.notify_one();
      continue;
    }
    var.state_.fetch_add(slot->write ? kWriter : 1, std::memory_order_acq_rel);
    if (--slot->task->waiting == 0) ready.push_back(slot->task);
  }
  var.state_.fetch_and(~kQueued, std::memory_order_acq_rel);
}

TaskErrorRef VarQueue::error(Var& var) {
  if (var.error_ && var.error_->cleared) take_error(var);
  return var.error_;
}

void VarQueue::set_error(Var& var, TaskErrorRef error) {
  var.error_ = std::move(error);
  var.state_.fetch_or(kError, std::memory_order_acq_rel);
}

TaskErrorRef VarQueue::take_error(Var& var) {
  var.state_.fetch_and(~kError, std::memory_order_acq_rel);
  TaskErrorRef error = std::exchange(var.error_, nullptr);
  return error && error->cleared ? nullptr : error;
}

}  // namespace hybridnet
