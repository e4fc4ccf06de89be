// Why a call failed, as one process found it. The processes exchange their findings through the meeting, so that all of
// them name the same cause: one that waits for a waiting process cannot know it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "hybridnet/error.h"

namespace hybridnet::group {

struct Finding {
  // From the least certain one.
  enum Certainty : int32_t {
    kClosed,        // a connection is closed; the other process may have given up because of a third one
    kLate,          // a process began this call, but its values did not come
    kAbsent,        // a process did not begin this call in time
    kEnded,         // a process has ended
    kLeft,          // a process said why it takes part no longer
    kDisagreement,  // processes make different calls
  };
  int32_t certainty = kClosed;
  int32_t rank = 0;  // the process that is the cause
  char message[640] = {};
  char because[640] = {};
  char fix[320] = {};

  Finding() = default;
  Finding(Certainty certainty, int rank, const std::string& message, const std::string& because,
          const std::string& fix);
  bool valid(int processes) const;
  bool more_certain_than(const Finding& other) const;
  ErrorFields fields() const;
};

std::string seconds_text(std::chrono::steady_clock::duration time);  // "2.5 s"

}  // namespace hybridnet::group
