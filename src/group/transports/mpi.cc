// Moves values by the MPI that started the program. Built once for each binary interface of MPI, from its headers only:
// libhybridnet.so loads the library of that MPI first.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "base/hash.h"
#include "group/transport.h"
#include "group/transports/mpi_world.h"

namespace hybridnet::group::mpi {
namespace {

using std::chrono::milliseconds;

constexpr auto kWait = milliseconds(5);  // the time of one call of Transfer::wait()

// Calls `found` until it returns true, or the time is over.
template <typename Found>
bool poll_until(World& world, Clock::time_point end, const Found& found) {
  while (!found()) {
    if (Clock::now() >= end) return false;
    if (const auto pause = world.pause(); pause.count() > 0) {
      std::this_thread::sleep_for(pause);
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(World& world, Operation operation) : world_(world), operation_(std::move(operation)) {
    operation_.sends ? world_.send(operation_) : world_.receive(operation_);
  }
  ~MpiTransfer() override { world_.give_back(operation_); }

  Progress wait() noexcept override {
    Progress progress = Progress::kPending;
    try {
      poll_until(world_, Clock::now() + kWait,
                 [&] { return (progress = world_.check(operation_)) != Progress::kPending; });
    } catch (const std::exception&) {
      return Progress::kClosed;
    }
    return progress;
  }

 private:
  World& world_;
  Operation operation_;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(World& world, uint64_t group) : world_(world), group_(group) { world_.open(group_); }
  ~MpiTransport() override { close(); }

  Transfer* start_send(int peer, uint64_t tag, const void* data, size_t bytes) noexcept override {
    return start(true, peer, tag, const_cast<void*>(data), bytes);
  }
  Transfer* start_receive(int peer, uint64_t tag, void* data, size_t bytes) noexcept override {
    return start(false, peer, tag, data, bytes);
  }
  void close() noexcept override { world_.close(group_); }

 private:
  Transfer* start(bool sends, int peer, uint64_t tag, void* data, size_t bytes) noexcept {
    try {
      Operation operation;
      operation.sends = sends;
      operation.peer = peer;
      operation.group = group_;
      operation.tag = tag;
      operation.data = static_cast<char*>(data);
      operation.bytes = bytes;
      return new MpiTransfer(world_, std::move(operation));
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  World& world_;
  const uint64_t group_;
};

class MpiMeeting final : public Meeting {
 public:
  explicit MpiMeeting(World& world) : world_(world) {}

  bool put(const char* key, const void* data, size_t bytes) noexcept override {
    try {
      return world_.put(key, {static_cast<const char*>(data), bytes});
    } catch (const std::exception&) {
      return false;
    }
  }
  int64_t get(const char* key, void* data, size_t capacity, int64_t timeout_ms) noexcept override {
    try {
      std::string value;
      if (!poll_until(world_, Clock::now() + milliseconds(timeout_ms), [&] { return world_.find(key, &value); }))
        return -1;
      std::memcpy(data, value.data(), std::min(capacity, value.size()));
      return static_cast<int64_t>(value.size());
    } catch (const std::exception&) {
      return -1;
    }
  }

 private:
  World& world_;
};

// Calls `make`; writes the text of its exception.
template <typename Make>
auto or_reason(char* reason, size_t capacity, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    std::snprintf(reason, capacity, "%s", error.what());
    return nullptr;
  }
}

}  // namespace
}  // namespace hybridnet::group::mpi

extern "C" __attribute__((visibility("default"))) int hybridnet_transport_abi() {
  return hybridnet::group::kTransportAbi;
}

extern "C" __attribute__((visibility("default"))) hybridnet::group::Meeting* hybridnet_open_meeting(
    const hybridnet::group::TransportRequest* request, char* reason, size_t capacity) {
  using namespace hybridnet::group::mpi;
  return or_reason(reason, capacity, [&] { return new MpiMeeting(World::of(*request)); });
}

extern "C" __attribute__((visibility("default"))) hybridnet::group::Transport* hybridnet_make_transport(
    const hybridnet::group::TransportRequest* request, char* reason, size_t capacity) {
  using namespace hybridnet::group::mpi;
  return or_reason(reason, capacity,
                   [&] { return new MpiTransport(World::of(*request), hybridnet::hash_text(request->prefix)); });
}
