// Streams of a device, and the order of their work. A device has a stream for kernels, one for copies to it, and one
// for copies from it. Each stream counts tickets; a block of device memory knows the ticket of its last write, and of
// the last read by each stream (StreamUse). Work that uses a block of another stream waits, on the device, for an event
// of that stream; events are recorded only then.
// Owner:   the process: streams are made at first use and stay.
// Threads: any. The engine orders the tasks that use an array; a stream's work runs in the order of launches.
// Throws:  EngineError of the backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/backend.h"
#include "hybridnet/base.h"

namespace hybridnet::device {

class Stream;
class LaunchBatch;
using Ticket = uint64_t;

namespace detail {
extern thread_local constinit Stream* t_current __attribute__((tls_model("initial-exec")));
// The launches that this thread collects; null: launches are made at once.
extern thread_local constinit LaunchBatch* t_batch __attribute__((tls_model("initial-exec")));
void submit_batch();
}  // namespace detail

inline constexpr int kMaxDevices = 64;  // that one process can use

// The unfinished work on a block of device memory.
// Owner: the pool, as long as the block exists: a block that is reused waits for its earlier users.
class StreamUse {
 public:
  struct Point {
    Stream* stream = nullptr;
    Ticket ticket = 0;
  };
  std::mutex mutex;                // readers run side by side
  Point written;                   // the last write
  std::vector<Point> read{};       // the last read of each stream since then
  Stream* temporary_of = nullptr;  // the stream whose kernels use the block until it is freed; null: an array's block
};

class Stream {
 public:
  enum class Kind : uint8_t { kCompute, kCopyIn, kCopyOut };
  static Stream& of(Device device, Kind kind = Kind::kCompute);  // throws UnsupportedError for a missing device

  Device device() const { return device_; }
  // For calls that push work: what this thread has collected (launch_batch.h) is pushed before.
  Backend::Stream handle() const {
    push_collected();
    return handle_;
  }
  Backend::Stream own_handle() const { return handle_; }  // for what LaunchGraphs pushes

  // The work that this thread pushes from now on follows the earlier uses of these blocks; null entries are skipped.
  void begin(std::span<StreamUse* const> reads, std::span<StreamUse* const> writes);
  // Marks these blocks as used by the work pushed so far.
  void end(std::span<StreamUse* const> reads, std::span<StreamUse* const> writes);
  // Waits on the calling thread until the work up to the ticket is done.
  void wait_for(Ticket ticket);
  void synchronize();

  // In the order of the stream.
  void copy_in(void* to, const void* from_host, int64_t bytes);
  void copy_out(void* to_host, const void* from, int64_t bytes);  // returns when the bytes have arrived
  void copy(void* to, const void* from, int64_t bytes);           // on the device
  void fill_bytes(void* to, uint8_t value, int64_t bytes);

 private:
  explicit Stream(Device device);
  static void push_collected();
  bool collects() const { return detail::t_batch != nullptr && this == detail::t_current; }
  void follow(const StreamUse::Point& point);

  const Device device_;
  Backend::Stream handle_ = nullptr;
  std::mutex mutex_;  // guards the members below
  Ticket pushed_ = 0, done_ = 0;
  std::vector<StreamUse::Point> follows_;  // the tickets of other streams that pushed work waits for already
  struct Recorded {
    Ticket ticket;
    Backend::Event event;
  };
  std::vector<Recorded> recorded_;  // in order; events of finished work are reused
  std::vector<Backend::Event> spare_events_;
  Backend::Event event_for(Ticket ticket, Ticket* covers);
  void forget_done_events();
};

// Waits for all work on a block.
void wait_for_use(StreamUse& use, bool for_readers_too);
// Waits for all work of all devices.
void wait_for_all();

// The stream for which this thread runs a kernel; null: the kernel runs on the CPU. The functions of src/kernels that
// have a form for devices ask it: pointers that they get are memory of the stream's device then.
inline Stream* current() { return detail::t_current; }

inline void Stream::push_collected() {
  if (detail::t_batch != nullptr) [[unlikely]]
    detail::submit_batch();
}

// Runs the kernels of this thread on a stream while it lives, or on the CPU (null). The launches of a batch around it
// are submitted before, and its own are not collected.
// Owner: a block of the thread; scopes end in reverse order.
class Scope {
 public:
  explicit Scope(Stream* stream);
  ~Scope() {
    detail::t_current = before_;
    detail::t_batch = batch_before_;
  }
  Scope(const Scope&) = delete;

 private:
  Stream* const before_;
  LaunchBatch* const batch_before_;
};

}  // namespace hybridnet::device
