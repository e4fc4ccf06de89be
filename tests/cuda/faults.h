// Page faults: a kernel's access to device memory opens the allocation for it; host code's access ends the process with
// a report. Other faults go to the handlers that were there before (Python's faulthandler, Java's).
// Threads: any.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <functional>

#include "world.h"

namespace standin {

// Runs the code of a kernel on a device. Returns kSuccess, or the error by which it ended: kIllegalAddress with a
// report, or what end_kernel() said. Needs world().mutex.
Result run_guarded(World& w, const std::string& name, int device, const std::function<Result()>& body);
// Installs the handlers; run_guarded() does, too, if others replaced them.
void prepare_for_faults();
// Ends the kernel that runs on this thread.
[[noreturn]] void end_kernel(Result result);

}  // namespace standin
