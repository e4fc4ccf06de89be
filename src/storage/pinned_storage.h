// The storage of arrays of cpu_pinned(i), where it is not the CPU's.
#pragma once

#include "hybridnet/storage.h"

namespace hybridnet {

// find: returns null where such arrays lie in ordinary memory. Runtime sets it.
void set_pinned_storage(Storage* (*find)());

}  // namespace hybridnet
