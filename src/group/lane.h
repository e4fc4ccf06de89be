// The calls of the group of this process, one after the other, in the order of the program: tasks of the worker of
// Device kWire, which may wait for other processes while work goes on elsewhere.
// Threads: any; calls of several threads are ordered by a lock, so that order must be the same in all processes.
// Throws:  what joining a group throws (current.h). What goes wrong between processes is kept on `writes`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "group/group.h"
#include "hybridnet/engine.h"

namespace hybridnet::group {

// Gets the number of the call.
using CallBody = std::function<void(Group&, uint64_t number)>;

// Pushes a call. `reads` and `writes`: the variables of its arrays, which may repeat; the body keeps the arrays alive.
void push_call(const char* name, std::span<Var* const> reads, std::span<Var* const> writes, int priority,
               CallBody body);
// Returns when all calls pushed so far are over. Rethrows the error of the last ones.
void wait_for_calls();

}  // namespace hybridnet::group
