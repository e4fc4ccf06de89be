// Threads of a launch, their memory, and the order in which those of a block run. Threads that do not cooperate run one
// after another. Others run to their next stop - a barrier, or an instruction of their warp - in turn.
// Throws: std::runtime_error for what fails or hangs on a GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

enum class Stop { kNone, kDone, kBarrier, kWarp };
// Instructions for which the threads of a mask meet.
enum class Meeting {
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kShuffleIndex,
  kVoteAll,
  kVoteAny,
  kVoteUniform,
  kBallot,
  kSync,
  kSum,
  kLeast,
  kMost,
  kLeastSigned,
  kMostSigned,
  kAnd,
  kOr,
  kXor,
};
enum class Reduction { kNone, kCount, kAll, kAny };  // operations of bar.red

struct Thread {
  uint32_t tid[3], ntid[3], ctaid[3], nctaid[3];
  uint32_t lane, warp;
  const unsigned char* param;
  unsigned char* shared;
  uint32_t shared_bytes;
  // The stop of this thread.
  Stop stop = Stop::kNone;
  int line = 0;  // line of the PTX
  Meeting meeting = Meeting::kSync;
  Reduction reduction = Reduction::kNone;
  uint32_t barrier = 0, mask = 0, a = 0, b = 0, c = 0;
  // The results of the stop.
  uint32_t result = 0;
  bool holds = false;
};

[[noreturn]] inline void fail(const std::string& reason, const Thread& thread, int line) {
  throw std::runtime_error("PTX line " + std::to_string(line) + ", block (" + std::to_string(thread.ctaid[0]) + ", " +
                           std::to_string(thread.ctaid[1]) + ", " + std::to_string(thread.ctaid[2]) + "), thread (" +
                           std::to_string(thread.tid[0]) + ", " + std::to_string(thread.tid[1]) + ", " +
                           std::to_string(thread.tid[2]) + "): " + reason);
}

template <class Pointer>
inline uint64_t address(Pointer pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}
// An address of memory, checked: a GPU stops at an access that is not aligned to its size.
inline unsigned char* at(const Thread& thread, uint64_t address, uint32_t bytes, int line) {
  if (address % bytes != 0) fail("an access of " + std::to_string(bytes) + " bytes is not aligned", thread, line);
  return reinterpret_cast<unsigned char*>(address);
}
inline unsigned char* at_shared(const Thread& thread, uint64_t offset, uint32_t bytes, int line) {
  if (offset % bytes != 0) fail("an access of " + std::to_string(bytes) + " bytes is not aligned", thread, line);
  if (offset + bytes > thread.shared_bytes) fail("an access is outside of shared memory", thread, line);
  return thread.shared + offset;
}
template <class T>
inline T load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
inline void store(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}
// Applies a function to memory and returns the value before.
template <class T, class Function>
inline T exchange(unsigned char* place, Function function) {
  const T before = load<T>(place);
  store<T>(place, T(function(before)));
  return before;
}

inline Thread make_thread(const unsigned char* param, const uint32_t* geometry, uint32_t block, uint32_t index) {
  Thread thread{};
  for (int axis = 0; axis < 3; ++axis) {
    thread.nctaid[axis] = geometry[axis];
    thread.ntid[axis] = geometry[3 + axis];
    thread.ctaid[axis] = block % geometry[axis];
    thread.tid[axis] = index % geometry[3 + axis];
    block /= geometry[axis];
    index /= geometry[3 + axis];
  }
  const uint32_t linear = thread.tid[0] + thread.ntid[0] * (thread.tid[1] + thread.ntid[1] * thread.tid[2]);
  thread.lane = linear % 32;
  thread.warp = linear / 32;
  thread.param = param;
  return thread;
}

// Runs f(block, thread) for every thread, in order.
template <class Function>
void for_each_thread(const uint32_t* geometry, uint32_t shared_bytes, const unsigned char* param, Function function) {
  const uint32_t blocks = geometry[0] * geometry[1] * geometry[2], threads = geometry[3] * geometry[4] * geometry[5];
  std::vector<uint64_t> shared(shared_bytes / 8 + 2);
  for (uint32_t block = 0; block < blocks; ++block) {
    for (uint32_t index = 0; index < threads; ++index) {
      Thread thread = make_thread(param, geometry, block, index);
      thread.shared = reinterpret_cast<unsigned char*>(shared.data());
      thread.shared_bytes = shared_bytes;
      function(thread);
    }
  }
}

// Runs a function; returns null or what it threw.
template <class Function>
const char* guarded(Function function) {
  static thread_local std::string message;
  try {
    function();
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

}  // namespace ptx
