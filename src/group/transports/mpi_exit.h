// How a process of MPI ends.
#pragma once

#include <functional>
#include <string>

namespace hybridnet::group::mpi {

// MPICH's mpirun stops all processes at once, and returns 0, if one ends by _exit(0); if one is killed, the others have
// no time to say why they stop. So a small child of this process waits for its end: it says what happened, gives the
// others a moment, and then has mpirun end the job with an error. `descriptor`: the connection to mpirun.
void watch_by_child(int descriptor, const std::string& name);
// This process ends now, and has said so itself. code: with which the child has mpirun end the job at once; 0: the job
// has no need for that.
void ends_with(int code) noexcept;
// Calls the function with the exit status when this process, and no forked child of it, ends by exit().
void call_at_exit(std::function<void(int)> function);

}  // namespace hybridnet::group::mpi
