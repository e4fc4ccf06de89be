// Launches of kernels that users wrote (device/user_program.h), as tasks of the engine.
// Threads: any; returns when the launch is pushed.
// Throws:  launch_user_kernel(): ValueError for an array on another device, in sparse storage, or for parameters whose
//          number or size differs from the kernel's; GradientError if the tape would lose a gradient; what
//          UserProgram::find() throws. What the driver reports later comes with a wait for a written array.
#pragma once

#include <string>
#include <vector>

#include "device/user_program.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

struct UserKernelArgument {
  NDArray array;      // an empty handle: a number
  bool written;       // the kernel may write the array
  std::string bytes;  // of the number
};

struct UserKernelCall {
  std::string name;
  device::Geometry geometry;  // a grid without blocks launches nothing
  uint32_t shared_bytes = 0;  // dynamic shared memory of a block
  std::vector<UserKernelArgument> arguments;
  Device device;
  bool declared = false;  // the caller has compared the arguments with the kernel's declaration
};

void launch_user_kernel(device::UserProgram& program, UserKernelCall call);

}  // namespace hybridnet
