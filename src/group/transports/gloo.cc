// Gloo's TCP transport: a full mesh of connections, which the processes find by their meeting.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "group/transport.h"
#include "group/transports/without_sigpipe.h"

namespace hybridnet::group {
namespace {

using std::chrono::milliseconds;

// Gloo's view of a meeting. Failures are exceptions, as Gloo expects.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(Meeting& meeting, std::string prefix, int64_t timeout_ms)
      : meeting_(meeting), prefix_(std::move(prefix)), timeout_ms_(timeout_ms) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    if (!meeting_.put((prefix_ + key).c_str(), data.data(), data.size()))
      throw gloo::IoException("the address could not be written to the meeting");
  }
  std::vector<char> get(const std::string& key) override {
    std::vector<char> data(kMaxBytes);
    const int64_t bytes = meeting_.get((prefix_ + key).c_str(), data.data(), data.size(), timeout_ms_);
    if (bytes < 0) throw gloo::IoException("process " + key + " did not come");
    if (static_cast<size_t>(bytes) > kMaxBytes)
      throw gloo::IoException("the address of process " + key + " is too long");
    data.resize(static_cast<size_t>(bytes));
    return data;
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, milliseconds(timeout_ms_)); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    for (const std::string& key : keys) {
      char unused = 0;
      if (meeting_.get((prefix_ + key).c_str(), &unused, 0, timeout.count()) < 0)
        throw gloo::IoException("process " + key + " did not come");
    }
  }

 private:
  static constexpr size_t kMaxBytes = 1 << 16;
  Meeting& meeting_;
  const std::string prefix_;
  const int64_t timeout_ms_;
};

// Ends a wait after some milliseconds. Gloo's own timeout would close all connections, and it has no test.
class Alarm {
 public:
  Alarm() : thread_([this] { run(); }) {}
  ~Alarm() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  // Returns false if the wait was ended.
  bool wait(gloo::transport::UnboundBuffer& buffer, bool sends) {
    const Armed armed(*this, buffer, sends);
    // The context's timeout is far longer than an alarm.
    return sends ? buffer.waitSend() : buffer.waitRecv();
  }

 private:
  static constexpr auto kTick = milliseconds(5);
  static constexpr int kTicksToWait = 2, kIdleTicks = 20;

  struct Armed {
    Armed(Alarm& of, gloo::transport::UnboundBuffer& buffer, bool sends) : alarm(of) {
      const std::lock_guard lock(alarm.mutex_);
      alarm.buffer_ = &buffer;
      alarm.sends_ = sends;
      alarm.ticks_ = 0;
      if (alarm.asleep_) alarm.changed_.notify_one();
    }
    ~Armed() {
      const std::lock_guard lock(alarm.mutex_);
      alarm.buffer_ = nullptr;
      alarm.ticks_ = 0;
    }
    Alarm& alarm;
  };

  // The thread ticks while waits follow each other, so that a wait does not have to wake it.
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (buffer_ == nullptr && ticks_ > kIdleTicks) {
        asleep_ = true;
        changed_.wait(lock, [this] { return stopped_ || buffer_ != nullptr; });
        asleep_ = false;
      }
      changed_.wait_for(lock, kTick, [this] { return stopped_; });
      if (++ticks_ < kTicksToWait || buffer_ == nullptr) continue;
      sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv();
      buffer_ = nullptr;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  gloo::transport::UnboundBuffer* buffer_ = nullptr;
  bool sends_ = false, stopped_ = false, asleep_ = false;
  int ticks_ = 0;       // since buffer_ changed
  std::thread thread_;  // last: it uses the members above
};

class GlooTransfer final : public Transfer {
 public:
  GlooTransfer(Alarm& alarm, const std::atomic<bool>& closed, std::atomic<int>& alive,
               std::unique_ptr<gloo::transport::UnboundBuffer> buffer, bool sends)
      : alarm_(alarm), closed_(closed), alive_(alive), buffer_(std::move(buffer)), sends_(sends) {
    ++alive_;
  }
  ~GlooTransfer() override {
    buffer_.reset();
    --alive_;
  }

  gloo::transport::UnboundBuffer& buffer() { return *buffer_; }
  Progress wait() noexcept override {
    try {
      if (alarm_.wait(*buffer_, sends_)) return Progress::kDone;
      return closed_ ? Progress::kClosed : Progress::kPending;  // Gloo does not end the waits of the closing side
    } catch (const std::exception&) {
      return Progress::kClosed;
    }
  }

 private:
  Alarm& alarm_;
  const std::atomic<bool>& closed_;
  std::atomic<int>& alive_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  const bool sends_;
};

class GlooTransport final : public Transport {
 public:
  explicit GlooTransport(std::shared_ptr<gloo::rendezvous::Context> mesh) : mesh_(std::move(mesh)) {}
  ~GlooTransport() override { close(); }

  Transfer* start_send(int peer, uint64_t tag, const void* data, size_t bytes) noexcept override {
    return start(const_cast<void*>(data), bytes, true,
                 [&](gloo::transport::UnboundBuffer& buffer) { buffer.send(peer, tag, 0, bytes); });
  }
  Transfer* start_receive(int peer, uint64_t tag, void* data, size_t bytes) noexcept override {
    return start(data, bytes, false, [&](gloo::transport::UnboundBuffer& buffer) { buffer.recv(peer, tag, 0, bytes); });
  }
  // Gloo's closeConnections() resets connections: it drops sent values that are still in the system's buffers, and the
  // peers may miss the reset. It alone ends transfers at work. Without any, connections end when all has arrived.
  void close() noexcept override {
    const std::lock_guard lock(mutex_);
    const WithoutSigpipe guard;
    closed_ = true;
    try {
      if (alive_ > 0) return mesh_->closeConnections();
      for (int peer = 0; peer < mesh_->size; ++peer) mesh_->getPair(peer).reset();
    } catch (const std::exception&) {  // they are closed
    }
  }

 private:
  template <typename Start>
  Transfer* start(void* data, size_t bytes, bool sends, const Start& begin) noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_) return nullptr;
    const WithoutSigpipe guard;  // a send writes what the socket takes at once
    try {
      auto transfer =
          std::make_unique<GlooTransfer>(alarm_, closed_, alive_, mesh_->createUnboundBuffer(data, bytes), sends);
      begin(transfer->buffer());
      return transfer.release();
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  const std::shared_ptr<gloo::rendezvous::Context> mesh_;
  std::mutex mutex_;  // a transfer begins before the end or not at all
  std::atomic<bool> closed_{false};
  std::atomic<int> alive_{0};  // transfers
  Alarm alarm_;
};

Transport* make(const TransportRequest& request) {
  const WithoutSigpipe guard;  // Gloo's thread, which is started here and writes the rest of sends, inherits it
  gloo::transport::tcp::attr attributes;
  attributes.hostname = request.address;
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
  auto mesh = std::make_shared<gloo::rendezvous::Context>(request.rank, request.size);
  mesh->setTimeout(milliseconds(request.timeout_ms));
  GlooStore store(*request.meeting, request.prefix, request.timeout_ms);
  mesh->connectFullMesh(store, device);
  mesh->setTimeout(std::chrono::hours(24));  // the alarm ends waits
  return new GlooTransport(std::move(mesh));
}

}  // namespace
}  // namespace hybridnet::group

extern "C" __attribute__((visibility("default"))) int hybridnet_transport_abi() {
  return hybridnet::group::kTransportAbi;
}

extern "C" __attribute__((visibility("default"))) hybridnet::group::Transport* hybridnet_make_transport(
    const hybridnet::group::TransportRequest* request, char* reason, size_t capacity) {
  try {
    return hybridnet::group::make(*request);
  } catch (const std::exception& error) {
    std::snprintf(reason, capacity, "%s", error.what());
    return nullptr;
  }
}
