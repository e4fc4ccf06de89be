// Processes that train together, in C++, C, Java and Python alike (docs/distributed.md):
//
//   int main() {
//     group::run([] {
//       const Model model("net-symbol.json", "net-0000.params");
//       const Trainer trainer(model, "sgd", {{"learning_rate", 0.1}});
//       trainer.sum_over_group();
//       ...  // the gradients of this process' part of the data
//       trainer.step(32 * group::size());
//     });
//   }
//
//   python -m hybridnet.launch -n 4 ./program
//
// All processes must make the same calls in the same order, each from one thread. Calls return before the work is done,
// like operators. A process that dies, stops or makes another call becomes a GroupError in all others, at the call or
// when a result is read. Names of arrays stand in errors; all processes give the same, and processes in Python need
// one.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/cpp/array.h"

namespace hybridnet::cpp::group {

// The place of a process that no launcher has started.
struct Settings {
  int rank = 0, size = 1;             // the number of this process, from 0, and the number of processes
  std::string meeting = {};           // "folder:/PATH", new for each job with mode 0700; or "tcp://HOST:PORT"
  std::string token_file = {};        // holds the secret of the job, 32 bytes or more; mode 0600
  int virtual_shards = 0;             // parts of a batch, at least size; 0: one for each process
  std::string address = "127.0.0.1";  // of this machine for the other processes
  std::string engine = "gloo";        // library that moves the bytes
  std::string name = "0";             // distinguishes groups that meet in one place, one after the other
  double timeout = 60;                // seconds that a process waits for another one
};

// Join a group; they return when all processes have come. Without settings: the group that the launcher describes, or
// one of this process alone; the functions below do that, too. Throw GroupError if a process does not come or differs
// in version, size or token, and if this process is in a group of several already; UnsupportedError without the library
// of the engine.
inline void join() { detail::check(hn_group_join(nullptr)); }
inline void join(const Settings& settings) {
  const HnGroupSettings given = {sizeof(HnGroupSettings),
                                 settings.rank,
                                 settings.size,
                                 settings.virtual_shards,
                                 settings.meeting.c_str(),
                                 settings.token_file.c_str(),
                                 settings.address.c_str(),
                                 settings.engine.c_str(),
                                 settings.name.c_str(),
                                 settings.timeout};
  detail::check(hn_group_join(&given));
}
inline bool is_joined() {
  int joined = 0;
  detail::check(hn_group_is_joined(&joined));
  return joined != 0;
}
// Leaves the group. Processes that still need this one get a GroupError with the reason.
inline void leave(const std::string& reason = "it left the group") { detail::check(hn_group_leave(reason.c_str())); }

inline int rank() {
  int number = 0;
  detail::check(hn_group_rank(&number));
  return number;
}
inline int size() {
  int count = 0;
  detail::check(hn_group_size(&count));
  return count;
}
// The number of parts of a sum: Settings::virtual_shards, else size().
inline int virtual_shards() {
  int count = 0;
  detail::check(hn_group_virtual_shards(&count));
  return count;
}
// The virtual shards of this process: [first, second).
inline std::pair<int, int> own_shards() {
  std::pair<int, int> shards;
  detail::check(hn_group_own_shards(&shards.first, &shards.second));
  return shards;
}

struct Counters {
  int64_t calls = 0, bytes_sent = 0;  // finished calls; bytes of values that this process has sent
};
inline Counters counters() {
  Counters now;
  detail::check(hn_group_counters(&now.calls, &now.bytes_sent));
  return now;
}

// The sum over all processes in a fixed order: the same bits in each process and in every run. Its gradient is the sum
// of the gradients of all processes.
inline Array sum(const Array& array, const std::string& name = "") {
  HnArray handle = nullptr;
  detail::check(hn_group_sum(array.get(), name.c_str(), &handle));
  return Array(handle);
}
// Overwrites the arrays, all of one dtype, by their sums over all processes, in one message. priority: calls that wait
// with a higher one go first.
inline void sum_into(const std::vector<Array>& arrays, const std::string& name = "", int priority = 0) {
  const std::vector<HnArray> given = detail::handles(arrays);
  detail::check(hn_group_sum_into(given.size(), given.data(), nullptr, name.c_str(), priority));
}
// The same into other arrays: sum_into({x, y}, into(x_sum, y_sum), "x and y").
inline void sum_into(const std::vector<Array>& arrays, const Into& out, const std::string& name = "",
                     int priority = 0) {
  if (out.arrays.size() != arrays.size())
    throw ValueError("group::sum_into: expected " + std::to_string(arrays.size()) + " arrays in out, got " +
                     std::to_string(out.arrays.size()));
  const std::vector<HnArray> given = detail::handles(arrays), targets = detail::handles(out.arrays);
  detail::check(hn_group_sum_into(given.size(), given.data(), targets.data(), name.c_str(), priority));
}
// The arrays of all processes, joined along a new leading axis of length size(). It has no gradient.
inline Array gather(const Array& array, const std::string& name = "") {
  HnArray handle = nullptr;
  detail::check(hn_group_gather(array.get(), name.c_str(), &handle));
  return Array(handle);
}
// Overwrites the arrays, all of one dtype, by those of the process root.
inline void broadcast(const std::vector<Array>& arrays, int root = 0, const std::string& name = "") {
  const std::vector<HnArray> given = detail::handles(arrays);
  detail::check(hn_group_broadcast(given.size(), given.data(), root, name.c_str()));
}
// Returns when all processes have called it.
inline void barrier() { detail::check(hn_group_barrier()); }

// Runs a program that trains with others: if it throws, the other processes read the text of the exception, which goes
// on to the caller.
template <typename Program>
void run(Program&& program) {
  const auto leave_with = [](const std::string& reason) {
    hn_group_leave(reason.substr(0, reason.find('\n')).c_str());
  };
  try {
    std::forward<Program>(program)();
  } catch (const GroupError&) {  // the others know
    throw;
  } catch (const Error& error) {
    leave_with(error.kind() + ": " + error.what());
    throw;
  } catch (const std::exception& error) {
    leave_with(std::string("std::exception: ") + error.what());
    throw;
  } catch (...) {
    leave_with("an exception that is no std::exception");
    throw;
  }
}

}  // namespace hybridnet::cpp::group
