// The folder of libhybridnet.so, beside which other libraries are looked for.
#pragma once

#include <string>

namespace hybridnet::cuda {

std::string folder_of_this_library();  // ends with '/'; empty if the loader does not know it
inline constexpr const char* kStandIn = "stand-in";
std::string stand_in_library();  // the path of libhnstandin.so, which tests use instead of a driver and NVRTC

}  // namespace hybridnet::cuda
