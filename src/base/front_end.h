// Calls from the library into the front end (Python): to issue a warning, and to check whether the user wants to stop.
#pragma once

#include <string>

#include "hybridnet/error.h"

namespace hybridnet {

// The class of a warning, by which users filter: UserWarning, or hybridnet.context.GpuFallbackWarning.
enum class WarningKind : int8_t { kUser, kGpuFallback };

struct FrontEnd {
  // Issues a warning about a line of the program, if that is known, from any thread. May throw: users can turn warnings
  // into errors.
  void (*warn)(const std::string& text, SourceLocation where, WarningKind kind) = nullptr;
  // Throws if the user wants to stop the work of the calling thread.
  void (*check_interrupt)() = nullptr;
};
void set_front_end(const FrontEnd& front_end);             // once, before work begins
void set_warning_function(decltype(FrontEnd::warn) warn);  // instead of the front end's

// Passes the text to the front end, or prints it on stderr if there is none.
void warn(const std::string& text, SourceLocation where = {}, WarningKind kind = WarningKind::kUser);
// Called by work on the caller's thread that may never end; calls the front end at most every 50 ms.
void check_interrupt();

}  // namespace hybridnet
