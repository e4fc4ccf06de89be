#include "device/outside.h"

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace hybridnet::device {
namespace {

// An event is used anew at once: a wait means the state of the event at the time of the call.
struct Events {
  std::mutex mutex;
  std::array<Backend::Event, kMaxDevices> of_device{};
};

Events& events() {
  static auto* const made = new Events;
  return *made;
}

void order(Device device, Backend::Stream first, Backend::Stream second) {
  Backend& driver = *backend();
  driver.make_current(device.id);
  const std::lock_guard lock(events().mutex);
  Backend::Event& event = events().of_device[static_cast<size_t>(device.id)];
  if (event == nullptr) event = driver.make_event();
  driver.record(event, first);
  driver.wait(second, event);
}

Backend::Stream handle(OutsideStream stream) { return reinterpret_cast<Backend::Stream>(stream); }

struct UsedOutside {
  std::mutex mutex;
  std::unordered_set<const StreamUse*> blocks;
  std::atomic<int64_t> count{0};
};

UsedOutside& used_outside() {
  static auto* const made = new UsedOutside;
  return *made;
}

}  // namespace

void follow_outside(Stream& stream, OutsideStream other) { order(stream.device(), handle(other), stream.handle()); }

void precede_outside(StreamUse& use, OutsideStream other) {
  std::vector<StreamUse::Point> points;
  {
    const std::lock_guard lock(use.mutex);
    if (use.written.stream != nullptr) points.push_back(use.written);
    points.insert(points.end(), use.read.begin(), use.read.end());
  }
  for (const StreamUse::Point& point : points) {
    const bool is_that_stream = point.stream->handle() == handle(other);
    if (!is_that_stream) order(point.stream->device(), point.stream->handle(), handle(other));
  }
}

void note_used_outside(StreamUse& use) {
  UsedOutside& all = used_outside();
  const std::lock_guard lock(all.mutex);
  all.blocks.insert(&use);
  all.count.store(static_cast<int64_t>(all.blocks.size()), std::memory_order_release);
}

bool forget_use_outside(const StreamUse& use) {
  UsedOutside& all = used_outside();
  if (all.count.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(all.mutex);
  const bool known = all.blocks.erase(&use) > 0;
  all.count.store(static_cast<int64_t>(all.blocks.size()), std::memory_order_release);
  return known;
}

void end_use_outside(StreamUse& use, Device device) noexcept {
  try {
    if (!forget_use_outside(use)) return;
    Stream& stream = Stream::of(device);
    StreamUse* const uses[] = {&use};
    stream.begin({}, uses);
    follow_outside(stream, kLegacyStream);
    stream.end({}, uses);
  } catch (const std::exception&) {
    // The process was forked or is ending, or a kernel has failed: the next launch or wait reports it.
  }
}

}  // namespace hybridnet::device
