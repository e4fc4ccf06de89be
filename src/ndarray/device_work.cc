#include "ndarray/device_work.h"

#include <algorithm>
#include <string>

#include "device/pinned.h"
#include "engine/early_writes.h"
#include "hybridnet/engine.h"
#include "hybridnet/error.h"

namespace hybridnet {
namespace {

using device::Stream;
using device::StreamUse;

StreamUse* use_of(const NDArray& array) { return array.impl()->chunk->block.use; }

// Returns the first array on a GPU; null: there is none.
const NDArray* on_gpu(std::span<const NDArray> arrays) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [](const NDArray& a) { return a && a.is_on_gpu(); });
  return found == arrays.end() ? nullptr : &*found;
}

// The work of a copy on one stream.
template <class Copy>
void copy_on_stream(Stream& stream, StreamUse* read, StreamUse* written, Copy copy) {
  const device::Scope scope(&stream);
  StreamUse* const reads[] = {read};
  StreamUse* const writes[] = {written};
  stream.begin(reads, writes);
  // A copy that fails may have been pushed, in part: later users of the memory wait for that.
  struct End {
    Stream& stream;
    const std::span<StreamUse*const> reads, writes;
    ~End() { stream.end(reads, writes); }
  } const end{stream, reads, writes};
  copy();
}

// Memory of the CPU that the device reads and writes by itself.
bool is_page_locked(const NDArray& array) { return !array.is_on_gpu() && use_of(array) != nullptr; }

void copy_out_to(const NDArray& from, void* target, StreamUse* use_of_target) {
  if (from.bytes() == 0) return;
  Stream& stream = Stream::of(from.device(), Stream::Kind::kCopyOut);
  copy_on_stream(stream, use_of(from), use_of_target, [&] { stream.copy_out(target, from.data(), from.bytes()); });
}

// The device reads the source while this task waits, so that no other task writes it meanwhile. Tasks that use the
// result need not wait here: their work follows the copy on the device.
void copy_in_from_page_locked(const NDArray& from, const NDArray& to) {
  Stream& stream = Stream::of(to.device(), Stream::Kind::kCopyIn);
  copy_on_stream(stream, use_of(from), use_of(to), [&] {
    device::pinned_memory()->copy_in_pinned(stream.handle(), to.data(), from.data(), from.bytes());
  });
  if (EarlyWrites* const writes = EarlyWrites::of_running_task()) writes->end(to.var());
  try {
    device::wait_for_use(*use_of(from), /*for_readers_too=*/true);
  } catch (const Error&) {
    stream.synchronize();  // another way to wait; what fails now is an error of the device
  }
}

void run_copy(const NDArray& from, const NDArray& to) {
  if (from.bytes() == 0) return;
  if (is_page_locked(from)) return copy_in_from_page_locked(from, to);
  if (!from.is_on_gpu()) return copy_in_now(to, from.data());
  if (!to.is_on_gpu()) return copy_out_to(from, to.data(), use_of(to));
  if (from.device() == to.device()) {
    Stream& stream = Stream::of(from.device());
    return copy_on_stream(stream, use_of(from), use_of(to), [&] { stream.copy(to.data(), from.data(), from.bytes()); });
  }
  const OwnedBlock between(from.bytes());
  copy_out_now(from, between.data());
  copy_in_now(to, between.data());
}

}  // namespace

DeviceWork::DeviceWork(std::span<const NDArray> reads, std::span<const NDArray> writes) {
  const NDArray* array = on_gpu(writes);
  if (array == nullptr) array = on_gpu(reads);
  if (array != nullptr) begin(Stream::of(array->device()), reads, writes);
}

void DeviceWork::begin(Stream& stream, std::span<const NDArray> reads, std::span<const NDArray> writes) {
  for (const NDArray& array : reads)
    if (array && use_of(array) != nullptr) reads_.push_back(use_of(array));
  for (const NDArray& array : writes)
    if (array && use_of(array) != nullptr) writes_.push_back(use_of(array));
  scope_.emplace(&stream);
  stream.begin(reads_, writes_);
  stream_ = &stream;
}

DeviceWork::~DeviceWork() {
  if (stream_ != nullptr) stream_->end(reads_, writes_);
}

void copy_between_devices(const NDArray& from, const NDArray& to) {
  Var* reads[] = {&from.var()};
  Var* writes[] = {&to.var()};
  const Engine::Access access{reads, writes};
  Engine::Options options;
  options.name = "copy between devices";
  options.cost_ns = from.bytes() / 8 + 1;
  const bool waits = from.is_on_gpu() || is_page_locked(from);
  if (waits) {
    options.device = from.is_on_gpu() ? from.device() : to.device();
  } else if (engine().try_begin_inline(access, options)) {
    struct Finish {
      const Engine::Access& access;
      ~Finish() { engine().finish_inline(access); }
    } finish{access};
    return run_copy(from, to);
  }
  options.where = current_location();
  engine().push([from, to](TaskContext&) { run_copy(from, to); }, access, options);
}

NDArray copy_on(const NDArray& array, Device device) {
  const NDArray copy = NDArray::deferred(array.spec(), device);
  copy_between_devices(array, copy);
  return copy;
}

NDArray on_cpu(const NDArray& array) {
  if (!array || !array.is_on_gpu()) return array;
  const NDArray copy = NDArray::empty(array.spec());
  array.copy_to(copy.data());
  return copy;
}

void wait_for_device(const NDArray& array, bool for_readers_too) {
  if (StreamUse* const use = use_of(array)) device::wait_for_use(*use, for_readers_too);
}

void copy_in_now(const NDArray& to, const void* source) {
  if (to.bytes() == 0) return;
  Stream& stream = Stream::of(to.device(), Stream::Kind::kCopyIn);
  copy_on_stream(stream, nullptr, use_of(to), [&] { stream.copy_in(to.data(), source, to.bytes()); });
}

void copy_out_now(const NDArray& from, void* target) { copy_out_to(from, target, nullptr); }

}  // namespace hybridnet
