// Teams of threads: the calling thread and helpers run one function, each with a number of its own.
//
// This is a library of its own (libhnteam.so), because oneDNN runs on it too: openmp.cc has the few functions of OpenMP
// that oneDNN calls. Helpers belong to the process, not to the thread that opens a team, so that there are never more
// of them than cores in use; the time that they spin before they sleep adapts to the load (waiting.h).
#pragma once

#include <cstdint>

namespace hybridnet::teams {

using Body = void (*)(void* data);

// Calls body(data) on `threads` threads at the same time, the calling thread being number 0; returns when all are done.
// The team is smaller if the system has no more threads, and has 1,024 at most. `body` may not throw.
void run(int threads, Body body, void* data);

// The same for work that the members take piece by piece: members that have not begun when the calling thread finds no
// more work are not waited for, and never run.
void run_while_there_is_work(int threads, Body body, void* data);

int number_in_team();   // the calling thread's number; 0 outside of teams
int threads_of_team();  // 1 outside of teams
bool in_team();         // true inside a team of two threads or more

// The number of threads that oneDNN may use when the calling thread calls it; 0: the default, or 1 inside a team.
void set_most_threads(int threads);
void set_default_threads(int threads);
int most_threads();

// Reserves `count` helpers for the teams of the calling thread, which have no others from now on, so that they can be
// bound to cores. 0 gives them back, with their former cores; so does the end of the thread.
void keep_helpers(int count);

}  // namespace hybridnet::teams
