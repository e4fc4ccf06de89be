// memcpy and memset for memory of the CPU, or of the device for which this thread runs a kernel.
#pragma once

#include <cstring>

#include "device/stream.h"

namespace hybridnet::device {

inline void copy_memory(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0 || to == from) return;
  if (Stream* const stream = current()) [[unlikely]]
    return stream->copy(to, from, bytes);
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

inline void zero_memory(void* to, int64_t bytes) {
  if (bytes <= 0) return;
  if (Stream* const stream = current()) [[unlikely]]
    return stream->fill_bytes(to, 0, bytes);
  std::memset(to, 0, static_cast<size_t>(bytes));
}

// Reads a small value, which the CPU needs to go on: waits for the device.
template <class T>
T read_value(const void* from) {
  T value;
  if (Stream* const stream = current()) [[unlikely]]
    stream->copy_out(&value, from, sizeof value);
  else
    std::memcpy(&value, from, sizeof value);
  return value;
}

// Writes a small value.
template <class T>
void write_value(void* to, const T& value) {
  if (Stream* const stream = current()) [[unlikely]]
    stream->copy_in(to, &value, sizeof value);
  else
    std::memcpy(to, &value, sizeof value);
}

}  // namespace hybridnet::device
