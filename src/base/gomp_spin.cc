// Built as libhybridnet_threads_init.so, whose initializer runs before libgomp's (see CMakeLists.txt): an OpenMP team
// that has finished its region spins before it sleeps, and unbounded spinning steals the cores of whoever works next
// (one extra busy thread made a 0.036 ms product take 4.7 ms; bounded to 1000 rounds it costs nothing when the machine
// is quiet).
#include <stdlib.h>

namespace {

__attribute__((constructor)) void bound_spinning() {
  if (getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
}

}  // namespace
