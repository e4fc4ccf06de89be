// Streams: work is queued, and runs when a thread waits for it; with a seed, also earlier, in any order that streams
// and events allow.
// Threads: world().mutex.
#pragma once

#include "world.h"

namespace standin {

// Queues work; returns its ticket. A stream that is captured keeps it for the graph instead, and the ticket is 0.
uint64_t push(World& w, Stream& stream, Work work);
// Runs the stream up to a ticket, and what that waits for.
Result run_until(World& w, Stream& stream, uint64_t ticket);
// Runs some work that may run now. False if there is none.
bool run_one(World& w, Stream* preferred);
// The host has waited for this: work that is pushed from now on comes after it.
void learn(World& w, const Clock& clock);
// Reports what cannot be captured, and spoils the capture.
Result refuse_in_capture(Stream& stream, const char* what);
Result synchronize(World& w, Stream& stream);

}  // namespace standin
