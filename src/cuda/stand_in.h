// The library that tests use instead of a driver and of NVRTC: HYBRIDNET_CUDA_DRIVER=stand-in.
#pragma once

#include <string>

#include "base/library_folder.h"

namespace hybridnet::cuda {

inline constexpr const char* kStandIn = "stand-in";
inline std::string stand_in_library() { return folder_of_this_library() + "libhnstandin.so"; }

}  // namespace hybridnet::cuda
