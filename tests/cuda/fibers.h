// Threads of a block that cooperate: one fiber each, switched at barriers and warp operations.
// Threads: world().mutex; one block runs at a time.
#pragma once

#include <string>

#include "host_interface.h"
#include "world.h"

namespace standin {

hn_host::Services& services();
// Names the kernel in reports from now on.
void begin_kernel(const std::string& name);
// Runs one block; the built-in variables hold everything but the thread. Returns kLaunchFailed with a report if threads
// wait for others that never come.
Result run_block(const hn_host::Kernel& kernel, const void* arguments, const hn_host::Order& threads);
// A fault here means that a thread has used up its stack.
bool is_end_of_stack(uintptr_t address);
// After a kernel that ended early: its fibers are in the middle of functions.
void forget_fibers();

}  // namespace standin
