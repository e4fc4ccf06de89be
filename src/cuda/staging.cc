#include "cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "cuda/errors.h"

namespace hybridnet::cuda {
namespace {

constexpr uint64_t kRingBytes = uint64_t{8} << 20;
constexpr size_t kPartBytes = size_t{1} << 20;  // the host fills one part while the device reads another
constexpr size_t kAlignment = 256;
constexpr size_t kMaxPending = 32;  // above this, finished copies are looked for at each new one

}  // namespace

void Staging::copy_in(StreamHandle stream, Pointer to, const void* from_host, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!prepare()) {
    call(driver_.copy_in, to, from_host, bytes, stream);
    call(driver_.stream_synchronize, stream);
    return;
  }
  const char* const from = static_cast<const char*>(from_host);
  for (size_t at = 0; at < bytes; at += kPartBytes)
    copy_part(stream, to + at, from + at, std::min(kPartBytes, bytes - at));
}

bool Staging::prepare() {
  if (ring_ || failed_) return ring_ != nullptr;
  void* memory = nullptr;
  failed_ = !succeeded(driver_.allocate_pinned(&memory, kRingBytes, 0));
  if (!failed_) ring_ = static_cast<char*>(memory);
  return !failed_;
}

void Staging::copy_part(StreamHandle stream, Pointer to, const char* from, size_t bytes) {
  if (pending_.size() >= kMaxPending) retire_done();
  char* const part = take(bytes);
  std::memcpy(part, from, bytes);
  const EventHandle event = new_event();
  spares_.push_back(event);  // it is there for the next copy if this one fails
  call(driver_.copy_in, to, static_cast<const void*>(part), bytes, stream);
  if (const Result result = driver_.event_record(event, stream); result != kSuccess) {
    note_handled(result);
    // The part is free when the copy is done. If that cannot be waited for either, the ring is never used again.
    if (!succeeded(driver_.stream_synchronize(stream))) {
      ring_ = nullptr;
      failed_ = true;
    }
    throw_failure(result, driver_.event_record.name);
  }
  spares_.pop_back();
  pending_.push_back({head_, event});
}

// A part does not cross the end of the ring: what is left there is skipped, and given back with the part.
char* Staging::take(size_t bytes) {
  const uint64_t needed = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const uint64_t left = kRingBytes - head_ % kRingBytes;
  const uint64_t end = head_ + (left < needed ? left : 0) + needed;
  while (end - tail_ > kRingBytes) retire_oldest();
  head_ = end;
  return ring_ + (end - needed) % kRingBytes;
}

void Staging::retire_oldest() {
  if (pending_.empty()) {  // copies failed, and left their parts taken
    tail_ = head_;
    return;
  }
  call(driver_.event_synchronize, pending_.front().event);
  tail_ = pending_.front().end;
  spares_.push_back(pending_.front().event);
  pending_.pop_front();
}

void Staging::retire_done() {
  while (!pending_.empty()) {
    const Result result = driver_.event_query(pending_.front().event);
    if (result == kNotReady) return;
    check(result, driver_.event_query.name);
    retire_oldest();
  }
}

EventHandle Staging::new_event() {
  EventHandle event = nullptr;
  if (spares_.empty()) {
    call(driver_.event_create, &event, kEventDisableTiming);
  } else {
    event = spares_.back();
    spares_.pop_back();
  }
  return event;
}

void Staging::release() noexcept {
  for (const Pending& pending : pending_) {
    note_handled(driver_.event_synchronize(pending.event));
    note_handled(driver_.event_destroy(pending.event));
  }
  for (const EventHandle event : spares_) note_handled(driver_.event_destroy(event));
  if (ring_) note_handled(driver_.free_pinned(ring_));
  pending_.clear();
  spares_.clear();
  ring_ = nullptr;
}

}  // namespace hybridnet::cuda
