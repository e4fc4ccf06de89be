// Where the threads of an OpenMP team run.
#pragma once

#include <cstdint>

namespace hybridnet {

// Lives while the calling thread has a parallel region of `threads` threads open, for about work_ns nanoseconds of work
// on one core. Before a brief region, at most every 250 us, it looks where the other threads of the team run and moves
// those that share the core of the calling thread.
//
// The system often wakes a thread on the core of the one that wakes it, above all when another thread has just run on
// the other cores: a thread that pushes work and waits is enough. The two then take turns on that core, and each spins
// while it holds the core that the other one needs, in every region and for as long as the process lives: measured on
// two cores, 50 to 70 us a region instead of 0.8.
//
// If a foreign thread is busy on the other core, a moved thread waits there for its turn, 3 ms and more. After a brief
// region that took that long the threads stay where they are for 20 ms, and for longer if it happens again soon. Long
// regions leave all to the system's own balancing, which has the time.
//
// Does nothing where the process has more cores than threads, and where the user has placed threads (OMP_PROC_BIND).
class TeamRegion {
 public:
  TeamRegion(int threads, double work_ns);
  ~TeamRegion();
  TeamRegion(const TeamRegion&) = delete;

 private:
  const double work_ns_;
  int64_t begin_ = 0;
};

}  // namespace hybridnet
