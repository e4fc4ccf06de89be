// The processes of a group, as they describe themselves when they meet, and what can be found out about one of them.
#pragma once

#include <cstdint>
#include <string>

namespace hybridnet::group {

// The description that a process gives the others before they connect. All of one job must agree in the first part.
struct ProcessCard {
  char version[24] = {};    // that of the library
  char engine[16] = {};     // that moves the bytes
  uint32_t byte_order = 0;  // 0x01020304 as this machine stores it
  int32_t abi = 0;          // the format of frames
  int32_t size = 0;         // processes of the group
  int32_t shards = 0;       // parts of sums; 0: one for each process
  int32_t rank = 0;
  int32_t process = 0;   // its number on its machine
  uint64_t started = 0;  // in ticks since the machine started: numbers of processes are used again
  char host[64] = {};

  static ProcessCard of_this_process(int rank, int size, int shards, const std::string& engine);
  // The first difference that keeps two processes from working together, as "version 1.0 and version 1.1"; empty: none.
  std::string difference(const ProcessCard& other) const;
  std::string str() const;        // "host b, pid 4711"
  std::string condition() const;  // "its process has ended"; empty if it is on another machine
};

}  // namespace hybridnet::group
