// The processes that train together, and what they compute together.
// Order:   the n-th call of one process belongs to the n-th call of every other one. Each begins with a message that
//          says what it is, so processes that disagree notice before any value is wrong.
// Errors:  a process that died, stopped, or does something else becomes a GroupError in every process. The group is
//          then closed: every later call throws the same error.
// Owner:   the process (current_group.h). Tests make their own.
// Threads: number() is called from any thread; the calls on memory by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "group/call.h"
#include "group/finding.h"
#include "group/process.h"
#include "group/settings.h"
#include "group/sum_tree.h"
#include "group/transport.h"
#include "hybridnet/error.h"

namespace hybridnet::group {

class Group {
 public:
  // Waits for the other processes. Throws GroupError if one does not come, or differs in version, engine, size or
  // token.
  static std::shared_ptr<Group> join(const Settings& settings);
  Group(Settings settings, std::unique_ptr<Meeting> meeting);  // to be connected: the parts of join(), for tests
  void connect(MakeTransportFunction make);
  ~Group();
  Group(const Group&) = delete;

  int rank() const { return settings_.rank; }
  int size() const { return settings_.size; }
  int shards() const { return settings_.shards == 0 ? settings_.size : settings_.shards; }
  Shards own_shards() const { return shards_of(rank(), size(), shards()); }
  uint64_t next_number() { return next_number_.fetch_add(1); }  // the number of the next call, in the program's order

  // out = the sum over all processes, of which each gives one array, or over all shards: if call.shards is shards(),
  // the nodes are those of covering_nodes(own_shards(), shards()). out may be one of the nodes.
  void sum(const Call& call, uint64_t number, std::span<const void* const> nodes, void* out);
  // out = the arrays of all processes, one after the other.
  void gather(const Call& call, uint64_t number, const void* own, void* out);
  void broadcast(const Call& call, uint64_t number, void* data);  // from call.root
  // out = the elements [bounds[rank()], bounds[rank() + 1]) of what sum() computes. bounds: ascending, from 0 to
  // call.count; the same in all processes.
  void sum_scatter(const Call& call, uint64_t number, std::span<const void* const> nodes,
                   std::span<const int64_t> bounds, void* out);
  // Before: each process has its part of data, between its bounds. After: each has all parts.
  void gather_parts(const Call& call, uint64_t number, std::span<const int64_t> bounds, void* data);
  void barrier(uint64_t number);
  static int64_t part_begin(int64_t count, int part, int parts);

  // Memory for values that are packed before they are sent, until the next call of this.
  char* staging(int64_t bytes) { return staging_.at_least(bytes); }

  // Tells the others why this process takes part no longer, and closes. The first reason counts.
  void leave(const std::string& reason) noexcept;
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  uint64_t calls() const { return finished_.load(std::memory_order_relaxed); }

 private:
  class Exchange;
  friend class Exchange;
  using Clock = std::chrono::steady_clock;

  struct Peer {
    ProcessCard card;
    std::optional<Call> last_call;  // that it took part in
    uint64_t last_number = 0;       // of that call
    Clock::time_point last_time;
  };
  // The nodes of a sum that each process gives.
  struct Layout {
    Layout(int processes, int shards);
    std::vector<Shards> nodes;  // the nodes of all processes, in order
    std::vector<int> first;     // the first node of each process; then the number of nodes
  };
  // Memory that is kept for the next call.
  class Room {
   public:
    char* at_least(int64_t bytes) {
      if (bytes > size_) {
        memory_.reset();
        size_ = 0;
        memory_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes));
        size_ = bytes;
      }
      return memory_.get();
    }

   private:
    std::unique_ptr<char[]> memory_;
    int64_t size_ = 0;
  };
  // Elements [begin, end) of an array.
  struct Part {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };

  void meet();
  void prove_token();
  std::string key(const char* label, int rank) const;
  std::string name_of(int rank) const;
  void check_open() const;                            // throws the error that closed the group
  std::optional<Finding> finding_by(int peer) const;  // what that process found when it closed the group
  Finding finding_of_closed(int peer, const std::string& call) const;
  [[noreturn]] void fail(const Finding& own);  // the cause is the most certain finding of all processes
  Finding most_certain(Finding finding);
  Part part_of(const Call& call, int rank) const;
  static Part part_of(std::span<const int64_t> bounds, int rank) {
    return {bounds[static_cast<size_t>(rank)], bounds[static_cast<size_t>(rank) + 1]};
  }
  std::vector<Row> receive_nodes(Exchange& exchange, const Call& call, std::span<const void* const> nodes, Part part);
  void send_nodes(Exchange& exchange, const Call& call, std::span<const void* const> nodes, int peer, Part part);

  const Settings settings_;
  const std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<Transport> transport_;
  std::vector<Peer> peers_;
  const Layout by_process_, by_shard_;
  Room scratch_, staging_;
  std::atomic<uint64_t> next_number_{0}, bytes_sent_{0}, finished_{0};
  mutable std::mutex mutex_;           // the two below
  std::optional<ErrorFields> broken_;  // why the group is closed
  bool left_ = false;
  const int process_;  // a forked child is no member
};

}  // namespace hybridnet::group
