// The libraries that move bytes, beside libhybridnet.so: libhybridnet_gloo.so, and libhybridnet_mpi_*.so for each
// binary interface of MPI.
// Threads: any.
#pragma once

#include <string>

#include "group/transport.h"

namespace hybridnet::group {

struct TransportLibrary {
  MakeTransportFunction make = nullptr;
  OpenMeetingFunction open_meeting = nullptr;  // null: the processes meet elsewhere
};

// Loads the library of an engine: gloo, mpich or openmpi. Throws UnsupportedError that says what is missing.
TransportLibrary load_transport(const std::string& engine);

}  // namespace hybridnet::group
