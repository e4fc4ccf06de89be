#include "hybridnet/ndarray.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#include "device/memory.h"
#include "device/outside.h"
#include "engine/run_ahead.h"
#include "engine/waiting_caller.h"
#include "ndarray/device_work.h"
#include "ndarray/donated.h"

namespace hybridnet {

uint64_t detail::refill_chunk_ids() {
  static std::atomic<uint64_t> blocks{0};
  return (blocks.fetch_add(1, std::memory_order_relaxed) << 16) + 1;
}

Chunk::~Chunk() {
  delete history.load(std::memory_order_acquire);
  if (block.data == nullptr && deferred_bytes == kReleased) block.data = derived_.evictable_values()->address();
  if (deleter) {
    deleter();
  } else if (block.data && !mapping) {
    storage(block.device).free(block);
  }
}

void* Chunk::take_memory() {
  if (deferred_bytes == kNoDenseMemory) {
    throw UnsupportedError({.expected = "an array in dense storage",
                            .given = "a sparse array",
                            .because = "its values are not kept in one piece of memory",
                            .fix = "convert it first: x.tostype('default')"});
  }
  if (deferred_bytes == kDonatedMemory) {
    const SourceLocation given{overwrite_file.load(std::memory_order_relaxed),
                               overwrite_line.load(std::memory_order_relaxed)};
    throw ValueError({.message = "the array was donated to a call, which may have written something else there",
                      .because = given.known() ? "it was an argument of the call at " + given.str() : "",
                      .fix = "pass a copy, x.copy(), or leave it out of donate"});
  }
  if (deferred_bytes == kReleased) {
    derived_.evictable_values()->restore(/*stays=*/true);
    return std::atomic_ref<void*>(block.data).load(std::memory_order_acquire);
  }
  // Runs once in a chunk's life. Two readers arrive here at once only if the task that should have written it failed.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (block.data == nullptr) {
    const Storage::Block taken = storage(block.device).allocate(deferred_bytes);
    if (deferred_zeros) std::memset(taken.data, 0, static_cast<size_t>(deferred_bytes));
    block.use = taken.use;
    block.bytes = taken.bytes;
    std::atomic_ref<void*>(block.data).store(taken.data, std::memory_order_release);
  }
  return block.data;
}

void Chunk::release_values() noexcept {
  // Else every run would find the offer again.
  const bool is_pinned = block.use != nullptr;  // its pages are locked
  if (!owns_block() || block.data == nullptr || is_pinned) return owner().derived_.evictable_values()->withdraw();
  deferred_bytes = kReleased;
  deferred_zeros = false;
  derived_.evictable_values()->release(block.data, derived_.pins());
}

NDArray donated_array(const NDArray& given) {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = given.spec();
  impl->chunk = make_ref<Chunk>();
  impl->chunk->deferred_bytes = kDonatedMemory;
  impl->chunk->block.device = given.device();
  const SourceLocation where = current_location();
  impl->chunk->overwrite_file = where.file;
  impl->chunk->overwrite_line = where.line;
  return NDArray(std::move(impl));
}

NDArray NDArray::deferred(const TensorSpec& spec, Device device) {
  constexpr int64_t kMaxDeferredBytes = int64_t{1} << 30;
  const int64_t bytes = spec.bytes();
  if (bytes == 0 || bytes > kMaxDeferredBytes || device.type == DeviceType::kGPU) return empty(spec, device);
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = make_ref<Chunk>();
  impl->chunk->deferred_bytes = bytes;
  impl->chunk->block.device = device;
  return NDArray(std::move(impl));
}

namespace {
NDArray zeros_of_gpu(const TensorSpec& spec, Device device) {
  const NDArray array = NDArray::empty(spec, device);
  const NDArray writes[] = {array};
  const DeviceWork work({}, writes);
  if (array.bytes() > 0) device::zero_memory(array.data(), array.bytes());
  return array;
}
}  // namespace

NDArray NDArray::deferred_zeros(const TensorSpec& spec, Device device) {
  if (device.type == DeviceType::kGPU) return zeros_of_gpu(spec, device);
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = make_ref<Chunk>();
  impl->chunk->deferred_bytes = spec.bytes();
  impl->chunk->deferred_zeros = true;
  impl->chunk->block.device = device;
  return NDArray(std::move(impl));
}

NDArray NDArray::mapped(void* data, const TensorSpec& spec, std::shared_ptr<const void> mapping) {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = make_ref<Chunk>();
  impl->chunk->block = {data, spec.bytes(), {}};
  impl->chunk->mapping = std::move(mapping);
  impl->chunk->derived()->set_pages(data, spec.bytes());
  return NDArray(std::move(impl));
}

NDArray NDArray::empty(const TensorSpec& spec, Device device) {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = make_ref<Chunk>();
  const int64_t bytes = spec.bytes();
  if (bytes > 0) {
    impl->chunk->block = storage(device).allocate(bytes);
  } else if (device.type == DeviceType::kGPU) {
    storage(device);  // throws if there is no such device
  }
  impl->chunk->block.device = device;  // the storage may have none of its own
  return NDArray(std::move(impl));
}

const char* storage_type_name(StorageType type) {
  switch (type) {
    case StorageType::kRowSparse:
      return "row_sparse";
    case StorageType::kCsr:
      return "csr";
    default:
      return "default";
  }
}

StorageType storage_type_from_name(std::string_view name) {
  for (const StorageType type : {StorageType::kDefault, StorageType::kRowSparse, StorageType::kCsr})
    if (name == storage_type_name(type)) return type;
  throw ValueError(
      {.input = "stype", .expected = "'default', 'row_sparse' or 'csr'", .given = "'" + std::string(name) + "'"});
}

NDArray NDArray::sparse(const TensorSpec& spec, Ref<Object> storage, Device device) {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = make_ref<Chunk>();
  impl->chunk->deferred_bytes = Chunk::kNoDenseMemory;
  impl->chunk->block.device = device;
  impl->sparse = std::move(storage);
  return NDArray(std::move(impl));
}

NDArray NDArray::pending(Device device) {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->chunk = make_ref<Chunk>();
  impl->chunk->block.device = device;
  impl->pending.store(true, std::memory_order_relaxed);
  return NDArray(std::move(impl));
}

void NDArray::wait_for_spec() const {
  {
    const RunAhead::FrontEndPause pause(run_ahead());
    wait_for_values();
  }
  if (!is_pending()) return;
  throw EngineError(
      {.message = "the shape of this array is not known", .because = "the task that computes the array has failed"});
}

void NDArray::publish(const NDArray& value) const {
  Chunk& mine = *impl_->chunk;
  Chunk& given = *value.impl_->chunk;
  impl_->spec = value.spec();
  const bool same_storage = given.block.device.type == mine.block.device.type;
  if (!given.owns_block() || !same_storage) {  // an input, or memory that another result has
    const Storage::Block made = storage(mine.block.device).allocate(value.bytes());
    mine.block.bytes = made.bytes;  // not the device, which others may read now
    mine.block.data = made.data;
    mine.block.use = made.use;
    device::copy_memory(mine.block.data, value.data(), value.bytes());
  } else {
    impl_->offset = value.impl_->offset;
    given.memory();
    mine.pin_for_good();
    mine.block.bytes = given.block.bytes;
    mine.block.use = given.block.use;
    mine.block.data = given.block.data;
    given.deleter = [] {};
    given.original = impl_->chunk;
    given.original_overwrites = 0;  // the count of a new array: writes may be queued after this task already
    given.order = mine.order;
  }
  impl_->pending.store(false, std::memory_order_release);
}

NDArray NDArray::lent(uint64_t overwrites) const {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec();
  impl->offset = impl_->offset;
  impl->chunk = make_ref<Chunk>();
  Chunk& chunk = *impl->chunk;
  chunk.original = impl_->chunk->original ? impl_->chunk->original : impl_->chunk;
  chunk.original->pin_for_good();
  impl_->chunk->memory();
  chunk.block = impl_->chunk->block;
  chunk.deleter = [] {};
  chunk.original_overwrites = overwrites;
  return NDArray(std::move(impl));
}

namespace {
// Gives foreign memory of a GPU its StreamUse. Returns a deleter that waits for our work on the memory first.
std::function<void()> after_work_on(Storage::Block& block, std::function<void()> deleter) {
  auto* const use = block.use = new device::StreamUse;
  return [use, deleter = std::move(deleter)] {
    try {
      device::wait_for_use(*use, /*for_readers_too=*/true);
    } catch (const std::exception&) {
      // A destructor cannot report that a kernel has failed: the next launch or wait does.
    }
    device::forget_use_outside(*use);
    delete use;
    if (deleter) deleter();
  };
}
}  // namespace

NDArray NDArray::from_memory(void* data, const TensorSpec& spec, std::function<void()> deleter, Device device) {
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = make_ref<Chunk>();
  impl->chunk->block = {data, spec.bytes(), device};
  impl->chunk->deleter =
      device.type == DeviceType::kGPU ? after_work_on(impl->chunk->block, std::move(deleter)) : std::move(deleter);
  if (!impl->chunk->deleter) impl->chunk->deleter = [] {};
  return NDArray(std::move(impl));
}

namespace {

NDArray view_of(const NDArray& a, const Shape& shape, int64_t offset) {
  if (a.is_sparse()) {
    throw UnsupportedError({.expected = "an array in dense storage",
                            .given = std::string("an array in storage '") + storage_type_name(a.storage_type()) + "'",
                            .because = "parts of sparse arrays are no views",
                            .fix = "convert it first: x.tostype('default')"});
  }
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec.shape = shape;
  impl->spec.dtype = a.dtype();
  impl->chunk = a.impl()->chunk;
  impl->offset = a.impl()->offset + offset;
  return NDArray(std::move(impl));
}

// Bytes of one step along the leading axis; 0 for arrays without elements, whose other sizes may be very large.
int64_t row_bytes(const NDArray& a) {
  if (a.size() == 0) return 0;
  return a.shape().size(1, a.ndim()) * dtype_size(a.dtype());
}

void require_axis(const NDArray& a) {
  if (a.ndim() > 0) return;
  throw IndexError(
      {.message = "a 0-dimensional array cannot be indexed", .fix = "use x.asscalar(), or x[()] for the array itself"});
}

}  // namespace

NDArray NDArray::reshaped(const Shape& shape) const {
  if (!shape.known() || shape.size() != size()) {
    throw ShapeError({.input = "shape",
                      .expected = "a shape of " + std::to_string(size()) + " elements",
                      .given = shape.str(),
                      .because = "the array has shape " + this->shape().str()});
  }
  return view_of(*this, shape, 0);
}

NDArray NDArray::sliced(int64_t begin, int64_t end) const {
  require_axis(*this);
  const int64_t rows = shape()[0];
  if (begin < 0 || end < begin || end > rows) {
    throw IndexError({.input = "axis 0",
                      .expected = "0 <= begin <= end <= " + std::to_string(rows),
                      .given = std::to_string(begin) + ":" + std::to_string(end)});
  }
  Shape s = shape();
  s[0] = end - begin;
  return view_of(*this, s, begin * row_bytes(*this));
}

NDArray NDArray::at(int64_t index) const {
  require_axis(*this);
  const int64_t rows = shape()[0];
  if (index < -rows || index >= rows) {
    throw IndexError({.input = "axis 0",
                      .expected = "an index in [" + std::to_string(-rows) + ", " + std::to_string(rows - 1) + "]",
                      .given = std::to_string(index)});
  }
  if (index < 0) index += rows;
  Shape s = Shape::unknown(ndim() - 1);
  for (int i = 1; i < ndim(); ++i) s[i - 1] = shape()[i];
  return view_of(*this, s, index * row_bytes(*this));
}

NDArray NDArray::detached() const {
  if (is_sparse()) return sparse(spec(), impl_->sparse, device());
  NDArray result = view_of(*this, shape(), 0);
  if (const MemoryHistory* history = impl_->chunk->history.load(std::memory_order_acquire)) [[unlikely]]
    result.impl()->tape = history->constant();
  return result;
}

void NDArray::wait_to_read() const {
  wait_for_values();
  impl_->chunk->owner().pin_for_good();
}
void NDArray::wait_for_values() const {
  WaitingCaller::note_wait();
  if (!var().readable()) engine().wait_to_read(var());
  if (is_on_gpu()) wait_for_device(*this, /*for_readers_too=*/false);
}
void NDArray::wait_to_write() const {
  if (!var().idle()) engine().wait_for_var(var());
  if (is_on_gpu()) wait_for_device(*this, /*for_readers_too=*/true);
}

void NDArray::copy_from(const void* source) const {
  wait_to_write();
  const PinnedMemory pinned(*this);
  if (DerivedData* derived = impl_->chunk->derived()) derived->keep_pages();
  if (is_on_gpu())
    copy_in_now(*this, source);
  else if (bytes() > 0)
    std::memcpy(data(), source, static_cast<size_t>(bytes()));
  impl_->chunk->overwrites.fetch_add(1, std::memory_order_relaxed);
  // An empty write through the engine increments the version, so that nothing derived from the old data is reused.
  Var* written[] = {&var()};
  const Engine::Access access{{}, written};
  Engine::Options options;
  options.name = "copy_from";
  if (engine().try_begin_inline(access, options)) {
    engine().finish_inline(access);
  } else {
    engine().push([keep = impl_](TaskContext&) {}, access, options);
  }
}

void NDArray::copy_to(void* target) const {
  wait_for_values();
  if (is_on_gpu()) return copy_out_now(*this, target);
  const PinnedMemory pinned(*this);
  if (bytes() > 0) std::memcpy(target, data(), static_cast<size_t>(bytes()));
}

}  // namespace hybridnet
