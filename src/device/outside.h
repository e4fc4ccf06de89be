// Other libraries of the process that use a device, too (CuPy, PyTorch): the order between their streams and ours, and
// blocks of our memory that they know.
// Owner:   the process.
// Threads: any. kThreadStream is a stream of the calling thread.
// Throws:  EngineError of the backend.
#pragma once

#include <cstdint>

#include "device/stream.h"

namespace hybridnet::device {

// A stream of another library: the driver's handle as a number, or one of these.
using OutsideStream = uint64_t;
inline constexpr OutsideStream kLegacyStream = 1;  // the default stream; it follows, and precedes, all streams but
                                                   // those that were made as non-blocking, such as ours
inline constexpr OutsideStream kThreadStream = 2;

// The work pushed to `stream` from now on follows the work that the other stream has now.
void follow_outside(Stream& stream, OutsideStream other);
// The work pushed to the other stream from now on follows our work on the block.
void precede_outside(StreamUse& use, OutsideStream other);

// Marks a block that other libraries know. They may still work on it when its array has died.
void note_used_outside(StreamUse& use);
// To be called when such a block returns to the pool: its next user follows the work that the legacy stream of the
// device has now. Does nothing for other blocks. Errors are left to the next launch: arrays call this as they die.
void end_use_outside(StreamUse& use, Device device) noexcept;
// The block itself goes: true if it was marked.
bool forget_use_outside(const StreamUse& use);

}  // namespace hybridnet::device
