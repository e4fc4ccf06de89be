// What the library tells and asks whoever called it: warnings, and whether the user wants to stop.
#pragma once

#include <string>

namespace hybridnet {

struct FrontEnd {
  // Gives a warning, from any thread. May throw: users may want warnings to be errors.
  void (*warn)(const std::string& text) = nullptr;
  // Throws if the user wants to stop what the calling thread does.
  void (*check_interrupt)() = nullptr;
};
void set_front_end(const FrontEnd& front_end);  // once, before work begins

// To the front end, or as a line on stderr where there is none.
void warn(const std::string& text);
// For work on the caller's thread that may never end; asks at most every 50 ms.
void check_interrupt();

}  // namespace hybridnet
