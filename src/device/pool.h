// Pooled memory of devices: Storage whose blocks carry their unfinished work (StreamUse). A block that is freed while a
// kernel still uses it may be taken again at once: its next user waits for the earlier ones, on the device.
// Owner:   the process: pools are made at first use and stay.
// Threads: any.
// Throws:  storage_of: UnsupportedError for a missing device; allocate: OutOfMemoryError with sizes and statistics,
//          after the pool has given all that it holds back to the driver and asked once more.
#pragma once

#include "hybridnet/storage.h"

namespace hybridnet::device {

Storage& storage_of(Device device);

// Called around a fork, so that the pools are consistent in the child, where devices cannot be used.
void before_fork();
void after_fork();

}  // namespace hybridnet::device
