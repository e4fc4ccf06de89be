// Processes of a group as threads of the test: a meeting and a transport in memory, with faults on demand.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "group/group.h"

namespace hybridnet::group {

// Shared by all threads. A message may be changed or dropped on its way.
class Hub {
 public:
  using Key = std::tuple<int, int, uint64_t>;  // from, to, tag
  struct Message {
    std::vector<char> bytes;
    std::chrono::steady_clock::time_point arrives;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> table;
  std::map<Key, std::vector<Message>> messages;
  std::vector<bool> closed;
  std::function<bool(int from, int to, std::vector<char>& bytes)> deliver;  // null: all; false drops the message
  std::function<std::chrono::microseconds()> delay;                         // null: none
};

class HubMeeting final : public Meeting {
 public:
  explicit HubMeeting(Hub& of) : hub(of) {}
  bool put(const char* key, const void* data, size_t bytes) noexcept override {
    const std::lock_guard lock(hub.mutex);
    const std::string value(static_cast<const char*>(data), bytes);
    const auto [place, is_new] = hub.table.try_emplace(key, value);
    hub.changed.notify_all();
    return is_new || place->second == value;
  }
  int64_t get(const char* key, void* data, size_t capacity, int64_t milliseconds) noexcept override {
    std::unique_lock lock(hub.mutex);
    const auto here = [&] { return hub.table.count(key) != 0; };
    if (!hub.changed.wait_for(lock, std::chrono::milliseconds(milliseconds), here)) return -1;
    const std::string& value = hub.table[key];
    std::memcpy(data, value.data(), std::min(capacity, value.size()));
    return static_cast<int64_t>(value.size());
  }
  Hub& hub;
};

class HubTransport final : public Transport {
 public:
  HubTransport(Hub& hub, int rank) : hub_(hub), rank_(rank) {}
  ~HubTransport() override { close(); }

  Transfer* start_send(int peer, uint64_t tag, const void* data, size_t bytes) noexcept override {
    const std::lock_guard lock(hub_.mutex);
    if (is_closed(peer)) return nullptr;
    std::vector<char> copy(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
    const auto wait = hub_.delay ? hub_.delay() : std::chrono::microseconds(0);
    if (!hub_.deliver || hub_.deliver(rank_, peer, copy))
      hub_.messages[{rank_, peer, tag}].push_back({std::move(copy), std::chrono::steady_clock::now() + wait});
    return new Sent;
  }
  Transfer* start_receive(int peer, uint64_t tag, void* data, size_t bytes) noexcept override {
    return new Received(*this, {peer, rank_, tag}, data, bytes);
  }
  void close() noexcept override {
    const std::lock_guard lock(hub_.mutex);
    hub_.closed[static_cast<size_t>(rank_)] = true;
  }

 private:
  class Sent final : public Transfer {
    Progress wait() noexcept override { return Progress::kDone; }
  };
  class Received final : public Transfer {
   public:
    Received(HubTransport& of, Hub::Key key, void* data, size_t bytes)
        : transport_(of), key_(key), data_(data), bytes_(bytes) {}
    Progress wait() noexcept override {
      std::this_thread::yield();
      Hub& hub = transport_.hub_;
      const std::lock_guard lock(hub.mutex);
      auto& queue = hub.messages[key_];
      if (!queue.empty() && queue.front().arrives <= std::chrono::steady_clock::now()) {
        if (queue.front().bytes.size() != bytes_) std::abort();  // Gloo does
        std::memcpy(data_, queue.front().bytes.data(), bytes_);
        queue.erase(queue.begin());
        return Progress::kDone;
      }
      return queue.empty() && transport_.is_closed(std::get<0>(key_)) ? Progress::kClosed : Progress::kPending;
    }

   private:
    HubTransport& transport_;
    const Hub::Key key_;
    void* const data_;
    const size_t bytes_;
  };

  bool is_closed(int peer) const {
    return hub_.closed[static_cast<size_t>(peer)] || hub_.closed[static_cast<size_t>(rank_)];
  }

  Hub& hub_;
  const int rank_;
};

inline Transport* make_hub_transport(const TransportRequest* request, char*, size_t) {
  return new HubTransport(static_cast<HubMeeting*>(request->meeting)->hub, request->rank);
}

// Runs body(group) in a thread for each process. Returns the text of each one's error; empty: none.
inline std::vector<std::string> run_processes(Hub& hub, int size, const std::function<void(Group&)>& body,
                                              Settings settings = {}) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  hub.closed.assign(static_cast<size_t>(size), false);
  settings.size = size;
  if (settings.token.empty()) settings.token = std::string(32, 't');
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Settings own = settings;
      own.rank = rank;
      try {
        Group group(own, std::make_unique<HubMeeting>(hub));
        if (size > 1) group.connect(&make_hub_transport);
        body(group);
        group.barrier(group.next_number());  // no process leaves while others need it
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace hybridnet::group
