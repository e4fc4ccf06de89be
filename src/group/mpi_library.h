// The MPI library of a job, which libhybridnet.so never links: the program may be started by any MPI.
// Threads: any.
#pragma once

#include <string>

namespace hybridnet::group {

// Loads the MPI of an engine ("mpich" or "openmpi") so that libraries that are loaded later find its functions. It is
// looked for in this order: HYBRIDNET_MPI_LIBRARY; one that the program has loaded; that of the mpirun that started the
// program; the loader's folders; the folder of Python's packages. Throws UnsupportedError that says where.
void load_mpi(const std::string& engine);

}  // namespace hybridnet::group
