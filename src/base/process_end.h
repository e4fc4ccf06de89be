// Work that must be done before a process ends, such as waiting for queued tasks.
//
// exit() destroys static objects in the reverse order of their construction, and runs the functions of atexit() in the
// same sequence. Those that the first tasks construct are younger than any atexit() of ours and would be destroyed
// while workers still use them. So this work is done earlier than both:
// - a C or C++ program whose main thread ends: by the destructor of a thread-local object, which precedes them;
// - Python and Java: by hooks of theirs, which call run_process_end();
// - exit() in another thread of a C or C++ program, or Runtime.halt() in Java: by atexit(), which may be late for
// static
//   objects of ours; those of oneDNN are never destroyed (teams/lasting_statics.cc).
#pragma once

namespace hybridnet {

// Runs `function` once at the end of the process, before the functions that were given earlier. It may not throw.
void at_process_end(void (*function)());

// Runs what at_process_end() was given, and forgets it.
void run_process_end();

}  // namespace hybridnet
