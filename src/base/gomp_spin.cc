// Built as libhybridnet_threads_init.so, whose initializer runs before libgomp's (see CMakeLists.txt): an OpenMP team
// that has finished its region spins before it sleeps. Unbounded spinning takes cores from the threads that work
// next (one extra busy thread made a 0.036 ms product take 4.7 ms). A team that falls asleep between two operators
// triples the time of both. 2000 rounds (about 30 us) are a few times the gap between two operators. With one extra
// busy thread 1000 rounds cost nothing, 4000 rounds 25 % and 16000 rounds 300 % more time.
#include <stdlib.h>

namespace {

bool were_set = false;

__attribute__((constructor)) void bound_spinning() {
  if (getenv("OMP_WAIT_POLICY") != nullptr || getenv("GOMP_SPINCOUNT") != nullptr) return;
  were_set = true;
  setenv("GOMP_SPINCOUNT", "2000", /*overwrite=*/0);
  // Without this setting libgomp spins for 100 rounds only as soon as the threads of all teams, asleep or not,
  // outnumber the cores: two teams, of the user's thread and of a worker, are enough.
  setenv("OMP_WAIT_POLICY", "active", /*overwrite=*/0);
}

}  // namespace

// Called once libgomp has read the variables: other OpenMP libraries and child processes must not see them.
extern "C" __attribute__((visibility("default"))) void hybridnet_unset_openmp_bounds() {
  if (!were_set) return;
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_WAIT_POLICY");
}
