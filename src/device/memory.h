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

// Copies values that the CPU needs to go on to its memory: waits for the device (OpBuilder::waits_on_gpu).
inline void copy_to_host(void* to_host, const void* from, int64_t bytes) {
  if (bytes <= 0) return;
  if (Stream* const stream = current()) [[unlikely]]
    return stream->copy_out(to_host, from, bytes);
  std::memcpy(to_host, from, static_cast<size_t>(bytes));
}

// Copies values of the CPU, whose memory may be used again at once.
inline void copy_from_host(void* to, const void* from_host, int64_t bytes) {
  if (bytes <= 0) return;
  if (Stream* const stream = current()) [[unlikely]]
    return stream->copy_in(to, from_host, bytes);
  std::memcpy(to, from_host, static_cast<size_t>(bytes));
}

template <class T>
T read_value(const void* from) {
  T value;
  copy_to_host(&value, from, sizeof value);
  return value;
}

template <class T>
void write_value(void* to, const T& value) {
  copy_from_host(to, &value, sizeof value);
}

}  // namespace hybridnet::device
