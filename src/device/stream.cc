#include "device/stream.h"

#include <algorithm>
#include <array>
#include <memory>

#include "device/byte_moves.h"
#include "hybridnet/error.h"

namespace hybridnet::device {

namespace detail {
thread_local constinit Stream* t_current __attribute__((tls_model("initial-exec"))) = nullptr;
}

namespace {

constexpr int kKinds = 3;
std::array<std::array<std::atomic<Stream*>, kKinds>, kMaxDevices> g_streams{};
std::mutex g_making;

[[noreturn]] void no_such_device(Device device) {
  const Backend* const driver = backend();
  const int count = driver != nullptr ? driver->num_devices() : 0;
  throw UnsupportedError({.expected = count > 0 ? "a device from gpu(0) to gpu(" + std::to_string(count - 1) + ")" : "",
                          .given = count > 0 ? device.str() : "",
                          .message = count > 0 ? "" : "there is no device " + device.str(),
                          .because = driver == nullptr ? why_none() : "",
                          .fix = "use mx.cpu(); mx.context.num_gpus() tells how many GPUs there are"});
}

}  // namespace

Stream& Stream::of(Device device, Kind kind) {
  if (device.id < 0 || device.id >= kMaxDevices) no_such_device(device);
  std::atomic<Stream*>& place = g_streams[static_cast<size_t>(device.id)][static_cast<size_t>(kind)];
  if (Stream* const known = place.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(g_making);
  if (place.load(std::memory_order_relaxed) == nullptr) {
    if (backend() == nullptr || device.id >= backend()->num_devices()) no_such_device(device);
    place.store(new Stream({DeviceType::kGPU, device.id}), std::memory_order_release);
  }
  return *place.load(std::memory_order_relaxed);
}

Stream::Stream(Device device) : device_(device) {
  backend()->make_current(device.id);
  handle_ = backend()->make_stream();
}

void Stream::begin(std::span<StreamUse* const> reads, std::span<StreamUse* const> writes) {
  const auto follow_last_write = [this](StreamUse& use) {
    const std::lock_guard lock(use.mutex);
    follow(use.written);
  };
  for (StreamUse* use : reads)
    if (use != nullptr) follow_last_write(*use);
  for (StreamUse* use : writes) {
    if (use == nullptr) continue;
    const std::lock_guard lock(use->mutex);
    follow(use->written);
    for (const StreamUse::Point& point : use->read) follow(point);
  }
}

void Stream::end(std::span<StreamUse* const> reads, std::span<StreamUse* const> writes) {
  push_collected();
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++pushed_;
  }
  for (StreamUse* use : reads) {
    if (use == nullptr) continue;
    const std::lock_guard lock(use->mutex);
    const auto mine = [this](const StreamUse::Point& point) { return point.stream == this; };
    const auto found = std::find_if(use->read.begin(), use->read.end(), mine);
    if (found != use->read.end())
      found->ticket = std::max(found->ticket, ticket);
    else
      use->read.push_back({this, ticket});
  }
  for (StreamUse* use : writes) {
    if (use == nullptr) continue;
    const std::lock_guard lock(use->mutex);
    use->written = {this, ticket};
    use->read.clear();
  }
}

void Stream::follow(const StreamUse::Point& point) {
  if (point.stream == nullptr || point.stream == this) return;
  const auto of_its_stream = [&](const StreamUse::Point& known) { return known.stream == point.stream; };
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(follows_.begin(), follows_.end(), of_its_stream);
    if (known != follows_.end() && known->ticket >= point.ticket) return;
  }
  Ticket covered = 0;
  const Backend::Event event = point.stream->event_for(point.ticket, &covered);
  if (event != nullptr) backend()->wait(handle_, event);
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(follows_.begin(), follows_.end(), of_its_stream);
  if (known == follows_.end())
    follows_.push_back({point.stream, covered});
  else
    known->ticket = std::max(known->ticket, covered);
}

// Returns an event behind the ticket, or null if the work up to it is done; `covers`: the last ticket before the event.
Backend::Event Stream::event_for(Ticket ticket, Ticket* covers) {
  const std::lock_guard lock(mutex_);
  forget_done_events();
  *covers = done_;
  if (ticket <= done_) return nullptr;
  for (const Recorded& recorded : recorded_) {
    if (recorded.ticket < ticket) continue;
    *covers = recorded.ticket;
    return recorded.event;
  }
  backend()->make_current(device_.id);
  Backend::Event event;
  if (spare_events_.empty()) {
    event = backend()->make_event();
  } else {
    event = spare_events_.back();
    spare_events_.pop_back();
  }
  spare_events_.push_back(event);  // it is there for the next call if this one fails
  backend()->record(event, handle_);
  recorded_.push_back({pushed_, event});
  spare_events_.pop_back();
  *covers = pushed_;
  return event;
}

// Under mutex_.
void Stream::forget_done_events() {
  size_t finished = 0;
  while (finished < recorded_.size() && backend()->is_done(recorded_[finished].event)) ++finished;
  for (size_t i = 0; i < finished; ++i) {
    done_ = std::max(done_, recorded_[i].ticket);
    spare_events_.push_back(recorded_[i].event);
  }
  recorded_.erase(recorded_.begin(), recorded_.begin() + static_cast<std::ptrdiff_t>(finished));
}

void Stream::wait_for(Ticket ticket) {
  push_collected();
  Ticket covers;
  const Backend::Event event = event_for(ticket, &covers);
  if (event == nullptr) return;
  backend()->synchronize(event);
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, covers);
}

void Stream::synchronize() {
  push_collected();
  Ticket pushed;
  {
    const std::lock_guard lock(mutex_);
    pushed = pushed_;
  }
  backend()->make_current(device_.id);
  backend()->synchronize(handle_);
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, pushed);
}

void Stream::copy_in(void* to, const void* from_host, int64_t bytes) {
  if (bytes > 0) backend()->copy_in(handle(), to, from_host, bytes);
}
void Stream::copy_out(void* to_host, const void* from, int64_t bytes) {
  if (bytes > 0) backend()->copy_out(handle(), to_host, from, bytes);
}
void Stream::copy(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0 || to == from) return;
  if (collects()) return launch_copy(to, from, bytes);
  backend()->copy(handle(), to, from, bytes);
}
void Stream::fill_bytes(void* to, uint8_t value, int64_t bytes) {
  if (bytes <= 0) return;
  if (collects()) return launch_fill(to, value, bytes);
  backend()->fill_bytes(handle(), to, value, bytes);
}

void wait_for_use(StreamUse& use, bool for_readers_too) {
  std::vector<StreamUse::Point> points;
  {
    const std::lock_guard lock(use.mutex);
    if (use.written.stream != nullptr) points.push_back(use.written);
    if (for_readers_too) points.insert(points.end(), use.read.begin(), use.read.end());
  }
  for (const StreamUse::Point& point : points) point.stream->wait_for(point.ticket);
}

void wait_for_all() {
  for (const auto& of_device : g_streams)
    for (const std::atomic<Stream*>& stream : of_device)
      if (Stream* const made = stream.load(std::memory_order_acquire)) made->synchronize();
}

Scope::Scope(Stream* stream) : before_(detail::t_current), batch_before_(detail::t_batch) {
  if (batch_before_ != nullptr) detail::submit_batch();
  if (stream != nullptr) backend()->make_current(stream->device().id);
  detail::t_current = stream;
  detail::t_batch = nullptr;
}

}  // namespace hybridnet::device
