// What the library calls in the front end (Python): to issue a warning, and to ask whether the user wants to stop.
#pragma once

#include <string>

namespace hybridnet {

struct FrontEnd {
  // Issues a warning, from any thread. May throw: users can turn warnings into errors.
  void (*warn)(const std::string& text) = nullptr;
  // Throws if the user wants to stop what the calling thread does.
  void (*check_interrupt)() = nullptr;
};
void set_front_end(const FrontEnd& front_end);                     // once, before work begins
void set_warning_function(void (*warn)(const std::string& text));  // instead of the front end's

// Passes the text to the front end, or prints it on stderr if there is none.
void warn(const std::string& text);
// Called by work on the caller's thread that may never end; asks the front end at most every 50 ms.
void check_interrupt();

}  // namespace hybridnet
