// Built as libhybridnet_threads_init.so, whose initializer runs before libgomp's (see CMakeLists.txt): an OpenMP team
// that has finished its region spins before it sleeps. Unbounded spinning steals the cores of whoever works next (one
// extra busy thread made a 0.036 ms product take 4.7 ms), while a team that falls asleep between two operators triples
// the time of both. 2000 rounds (some 30 us) are a few times what lies between two operators; with one extra busy
// thread 1000 rounds cost nothing, 4000 a quarter more time and 16000 four times as much.
#include <stdlib.h>

namespace {

bool were_set = false;

__attribute__((constructor)) void bound_spinning() {
  if (getenv("OMP_WAIT_POLICY") != nullptr || getenv("GOMP_SPINCOUNT") != nullptr) return;
  were_set = true;
  setenv("GOMP_SPINCOUNT", "2000", /*overwrite=*/0);
  // Otherwise it would be 100 rounds once two threads (that of the user and a worker) have opened a team each: libgomp
  // counts the threads of all teams, asleep or not, and holds that against the number of cores.
  setenv("OMP_WAIT_POLICY", "active", /*overwrite=*/0);
}

}  // namespace

// Once libgomp has read them: they are not meant for other OpenMP libraries of the process, nor for its children.
extern "C" __attribute__((visibility("default"))) void hybridnet_unset_openmp_bounds() {
  if (!were_set) return;
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_WAIT_POLICY");
}
