// Moves bytes between the processes of a group. Implemented by libraries that are loaded at their first use
// (src/group/transports); this header is all that they share with libhybridnet.so, so nothing here may throw.
// Owner:   Group; transfers are owned by the call that started them and die before their transport.
// Threads: one thread uses a transport at a time, except for close(), which any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hybridnet::group {

// Changes with every change of this header: a library with another number is refused.
inline constexpr int kTransportAbi = 3;

enum class Progress : int {
  kPending,
  kDone,
  kClosed,  // the connection is closed: the other process has ended, or this transport was closed
};

// Memory on its way. Its bytes belong to the transport until test() returns kDone, or the transport is closed.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Waits for some milliseconds at most. Not called again after kDone.
  virtual Progress wait() noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;  // closes
  // Transfers with one peer match if their tags are equal; both sides must then name the same number of bytes. The
  // caller deletes the result; null if the connection is closed.
  virtual Transfer* start_send(int peer, uint64_t tag, const void* data, size_t bytes) noexcept = 0;
  virtual Transfer* start_receive(int peer, uint64_t tag, void* data, size_t bytes) noexcept = 0;
  // Pending and later transfers end with kClosed, here and at the peers.
  virtual void close() noexcept = 0;
};

// A table of small values that all processes of a group can reach, for finding each other and for telling why one gave
// up. Implemented in libhybridnet.so, or by a library whose processes know each other already.
class Meeting {
 public:
  virtual ~Meeting() = default;
  // False if the table cannot be reached, or holds another value of this key already.
  virtual bool put(const char* key, const void* data, size_t bytes) noexcept = 0;
  // Waits until the key has a value, copies at most `capacity` bytes of it and returns its size; -1 after the timeout.
  virtual int64_t get(const char* key, void* data, size_t capacity, int64_t milliseconds) noexcept = 0;
};

struct TransportRequest {
  int rank = 0, size = 1;
  const char* address = "127.0.0.1";  // this machine, as the other processes reach it
  const char* prefix = "";            // for keys in the meeting, another one for each group of these processes
  Meeting* meeting = nullptr;
  int64_t timeout_ms = 60'000;
  int abort_descriptor = -1;  // a connection to MPICH's mpirun; -1: there is none
  uint64_t communicator = 0;  // handle of an MPI_Comm in C, whose processes are the group; 0: MPI_COMM_WORLD
};

// The functions that such a library exports, with C linkage. The first returns kTransportAbi. The second connects all
// processes; it returns null and a reason if that fails. So does the third, which only some libraries have.
using TransportAbiFunction = int (*)();
using MakeTransportFunction = Transport* (*)(const TransportRequest* request, char* reason, size_t capacity);
using OpenMeetingFunction = Meeting* (*)(const TransportRequest* request, char* reason, size_t capacity);
inline constexpr const char* kTransportAbiName = "hybridnet_transport_abi";
inline constexpr const char* kMakeTransportName = "hybridnet_make_transport";
inline constexpr const char* kOpenMeetingName = "hybridnet_open_meeting";

}  // namespace hybridnet::group
