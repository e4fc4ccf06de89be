// The folder of libhybridnet.so, beside which other libraries are looked for.
// Threads: any.
// Throws:  nothing.
#pragma once

#include <string>

namespace hybridnet {

std::string folder_of_this_library();  // ends with '/'; empty if the loader does not know it

}  // namespace hybridnet
