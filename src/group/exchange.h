// The messages of one call between this process and all others.
// Owner:   a block of the call. Transfers that are not finished when it ends close the group.
// Threads: one.
// Throws:  GroupError, after which the group is closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "group/group.h"

namespace hybridnet::group {

class Group::Exchange {
 public:
  // Sends what the call is to all others. Values may follow at once: they arrive only where the same call is made.
  Exchange(Group& group, const Call& call, uint64_t number);
  ~Exchange();
  Exchange(const Exchange&) = delete;

  // Start transfers, whose memory must stay until they are finished. `phase`: distinguishes the messages of two
  // processes in one call, from 1.
  void send(int peer, int phase, const void* data, int64_t bytes);
  void receive(int peer, int phase, void* data, int64_t bytes);
  // Waits for the values of one process.
  void finish_receive(int peer, int phase) {
    wait([=](const Pending& pending) { return pending.peer == peer && pending.phase == phase && !pending.sends; });
  }
  void finish();  // waits for all transfers

 private:
  struct Pending {
    int peer = 0;
    int phase = 0;  // 0: a frame
    bool sends = false;
    std::unique_ptr<Transfer> transfer;
  };
  using Wanted = std::function<bool(const Pending&)>;

  void add(int peer, int phase, bool sends, Transfer* transfer);
  uint64_t tag(int phase) const;
  void wait(const Wanted& wanted);
  bool finish_one(size_t i);
  void greet(int peer);
  void greet_all();
  [[noreturn]] void fail_closed(int peer);
  [[noreturn]] void fail_late();
  [[noreturn]] void fail_disagreement(int peer);
  std::string call_text() const;

  Group& group_;
  const Call& call_;
  const uint64_t number_;
  const Frame frame_;
  std::vector<Frame> frames_;  // frames of the others
  std::vector<Pending> pending_;
  int64_t bytes_ = 0;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace hybridnet::group
