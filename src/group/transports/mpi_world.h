// The MPI of this process: starts it, and moves messages between this process and all others.
// Messages: every process sends each other one a stream of notes, which arrive in order. A note carries a small value
// or
//           a value of the meeting, or says that a group ends or that a large value follows. Large values are received
//           only after their note, so that tags and sizes are compared before MPI writes any memory of a caller.
// Waiting:  nothing here waits inside MPI, which has no deadlines: all requests are tested.
// Owner:    the process; MPI starts once in it. Never destroyed.
// Threads:  any; a lock lets one thread at a time use MPI.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "group/transport.h"
#include "group/transports/mpi_note.h"

namespace hybridnet::group::mpi {

using Clock = std::chrono::steady_clock;

// One value on its way between a caller's memory and a peer.
struct Operation {
  enum class State {
    kUnmatched,  // no note has announced the value yet
    kMoving,     // MPI may use the memory
    kDone,
    kFailed
  };
  State state = State::kUnmatched;
  bool sends = false;
  int peer = 0;
  uint64_t group = 0, tag = 0;
  char* data = nullptr;
  size_t bytes = 0;
  std::vector<MPI_Request> requests;
};

class World {
 public:
  // The world of this process; starts MPI at the first call. Throws std::runtime_error.
  static World& of(const TransportRequest& request);

  // ---- values. Operations belong to the caller, and must be given back before they die.
  void send(Operation& operation);
  void receive(Operation& operation);
  Progress check(Operation& operation);
  void give_back(Operation& operation) noexcept;  // MPI does not use its memory afterwards

  // ---- groups, by the hash of their name
  void open(uint64_t group);
  void close(uint64_t group) noexcept;

  // ---- the meeting: every process has a copy of the table
  bool put(std::string_view key, std::string_view value);
  bool find(const std::string& key, std::string* value);

  // How long to sleep before the next look; 0: no time. Grows while nothing arrives.
  std::chrono::microseconds pause();

  // Ends MPI when the program ends with this status.
  void finish(int status);

 private:
  using Key = std::tuple<int, uint64_t, uint64_t>;  // peer, group, tag

  explicit World(const TransportRequest& request);
  void initialize(const TransportRequest& request, Clock::time_point end);
  void connect(MPI_Comm processes, Clock::time_point end);
  bool connects(MPI_Comm processes) const;
  void watch_peers(Clock::time_point end);
  void finish_request(MPI_Request* request, Clock::time_point end, const char* what);

  void progress();
  void listen(int peer);
  void read(int peer, std::unique_ptr<Note> note);
  void look_for_deaths();
  void send_note(int peer, NoteHead head, std::string_view first, std::string_view second = {});
  void send_to_all(const NoteHead& head, std::string_view first = {}, std::string_view second = {});
  void deliver(Operation& operation, const Note& note);
  void move(Operation& operation, uint64_t sequence);
  static bool are_over(Operation& operation, bool* right);
  bool is_open(uint64_t group) const;
  bool has_unfinished_send(uint64_t group) const;
  bool all_have_ended(bool* in_order) const;
  void require(int code, const char* call) const;

  mutable std::mutex mutex_;
  MPI_Comm all_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool owns_mpi_ = false;  // another part of the program started MPI, and ends it
  // MPI is not entered any more: it might use memory that a failed call has given back to its owner.
  bool stopped_ = false;
  bool failed_ = false;  // a value was given up
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Note>> sent_;  // notes that MPI still reads
  std::vector<Operation*> moving_;
  std::map<Key, std::deque<Operation*>> waiting_;             // receives without a note
  std::map<Key, std::deque<std::unique_ptr<Note>>> arrived_;  // notes without a receive
  std::map<uint64_t, bool> open_;                             // groups of this process; false: closed
  std::map<std::string, std::string, std::less<>> table_;
  Clock::time_point last_event_ = Clock::now(), last_look_ = Clock::now();
};

}  // namespace hybridnet::group::mpi
