// Constants of a graph on the device of its plan.
// Threads: any.
// Throws:  UnsupportedError for an array that was captured on a GPU other than the plan's device.
#pragma once

#include "hybridnet/base.h"
#include "hybridnet/gradient.h"

namespace hybridnet {

// The constant itself if it is on the device, else a copy there whose values are known on return: passes compute
// values on a CPU.
Ref<Object> placed_constant(const Ref<Object>& constant, Device device);

}  // namespace hybridnet
