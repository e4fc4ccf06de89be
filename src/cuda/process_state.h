// Two states of a process in which the CUDA driver must not be called: it was forked after the driver's start, or it is
// ending.
// Threads: any.
#pragma once

namespace hybridnet::cuda {

// To be called once the driver has been initialized: from then on forked children and the end of the process are known.
// The driver registers what it does at exit while it is initialized, so that our note of the end comes first.
void watch_process();

bool process_is_forked();  // true in a child of the process that initialized the driver
bool process_is_ending();  // true once exit() runs handlers

// Throws DeviceError with the fix.
[[noreturn]] void throw_forked();

}  // namespace hybridnet::cuda
