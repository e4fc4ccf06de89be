// The kernels that were launched last, for errors that surface later than the launch of the kernel that caused them.
// Threads: any.
// Throws:  nothing.
#pragma once

#include <string>

namespace hybridnet::device {

// kernel: a name that stays, of a launch by this thread; in a plan its node and line are noted, too. Takes no lock:
// launches of several threads at the same time may be missed.
void note_launch(const char* kernel);
// "'tanh_map' of node 'tanh0' at net.py:12, ...", the newest first; empty: there were none.
std::string last_launches();

}  // namespace hybridnet::device
