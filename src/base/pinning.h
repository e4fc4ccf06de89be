// Binding a thread and its helper threads to cores.
#pragma once

#include <span>

namespace hybridnet {

// Binds the calling thread to cores[0] and the threads of its team to the others, in order: its parallel regions have
// cores.size() threads from now on, also those of oneDNN. Empty: it may run on its former cores again. Throws
// ValueError for more cores than cpu_cores(), for repeated ones and for those that the process does not have; then
// nothing has changed. Linux keeps the binding until the thread ends.
void pin_thread(std::span<const int> cores);

}  // namespace hybridnet
