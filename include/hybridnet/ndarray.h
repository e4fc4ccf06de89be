// Async tensors: a spec, a piece of pooled storage, the engine variable that orders accesses to it, and a tape mark.
// Copying an NDArray copies a handle. Reading data() is only allowed inside a task or after wait_to_read().
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hybridnet/base.h"
#include "hybridnet/engine.h"
#include "hybridnet/op.h"
#include "hybridnet/storage.h"
#include "storage/derived.h"

namespace hybridnet {

namespace detail {
uint64_t refill_chunk_ids();
// Returns an id that is unique and never 0. Each thread draws from its own block of ids, so it costs an addition.
inline uint64_t next_chunk_id() {
  thread_local uint64_t next = 0;
  if ((next & 0xffff) == 0) next = refill_chunk_ids();
  return next++;
}
}  // namespace detail

class ArrayImpl;
class Chunk;
class TapeInfo;

// The writes into memory that several arrays share, kept for the tape; defined in imperative/write_history.
// Owner:   the chunk (Chunk::history).
// Threads: any.
class MemoryHistory {
 public:
  virtual ~MemoryHistory() = default;
  // Called when one of the arrays that share the chunk is about to die.
  virtual void array_dies(const Chunk& chunk) noexcept = 0;
  // The mark of an array that stays a constant after any write into the memory.
  virtual Ref<TapeInfo> constant() const = 0;
};

// Memory plus the variable that orders its users; shared by all views.
// Owner:   arrays and tasks that refer to it, by reference counting.
// Threads: tasks that declare `var` may use the memory. Atomic members may be read by any thread; the others are set
//          before a second thread knows the chunk, or by the task that writes it.
// Throws:  memory() throws UnsupportedError for a sparse array, ValueError for donated memory, OutOfMemoryError.
class Chunk : public RefCounted<Chunk> {
 public:
  Chunk() = default;
  ~Chunk();
  Var var;
  const uint64_t id = detail::next_chunk_id();
  // Data derived from the values (packed weights). Null on a GPU, whose kernels keep no copies, and for foreign memory
  // (a NumPy array's): its owner may write it without our knowledge.
  DerivedData* derived() { return original ? original->derived() : is_foreign() || is_on_gpu() ? nullptr : &derived_; }
  bool is_on_gpu() const { return block.device.type == DeviceType::kGPU; }
  Storage::Block block;
  // The chunk whose memory this chunk uses, if it was lent (NDArray::lent). During the task of the loan, this chunk's
  // variable orders the work on the memory; afterwards the variable of `order` does.
  Ref<Chunk> original;
  Chunk* order = this;
  uint64_t original_overwrites = 0;              // overwrites of the original, when the task was pushed
  int64_t deferred_bytes = 0;                    // allocated from the pool at the first call of memory()
  bool deferred_zeros = false;                   // and then filled with zeros
  static constexpr int64_t kNoDenseMemory = -1;  // deferred_bytes of sparse arrays: asking for memory is an error
  static constexpr int64_t kReleased = -3;       // deferred_bytes since release_values()
  void* memory() {
    void* data = std::atomic_ref<void*>(block.data).load(std::memory_order_acquire);
    return data != nullptr || deferred_bytes == 0 ? data : take_memory();
  }
  // The same, but the values may be released: for readers of packed copies. To read the values, make a ReadLease.
  void* address() {
    void* data = std::atomic_ref<void*>(block.data).load(std::memory_order_acquire);
    return data == nullptr && deferred_bytes == kReleased ? derived_.evictable_values()->address() : memory();
  }
  // Returns the pages of the values to the system if a packed copy replaces them (DerivedData::offer). Call it in a
  // task that is the only user of the chunk (ExclusiveRead).
  void release_values() noexcept;
  // To be called before the memory is used outside of tasks: restores the values, which stay for good or until unpin().
  void pin_for_good() {
    derived_.pin_for_good();
    come_back();
  }
  void pin() {
    derived_.pin();
    come_back();
  }
  void unpin() { derived_.unpin(); }
  // True if the chunk holds zeros that take no memory yet.
  bool is_untouched() const {
    return deferred_zeros && std::atomic_ref<void* const>(block.data).load(std::memory_order_acquire) == nullptr;
  }
  // The number of writes, counted when they are pushed (Var::version counts them when they ran), and the user's line
  // that pushed the last one. With these the tape detects that a saved value was overwritten.
  std::atomic<uint64_t> overwrites{0};
  std::atomic<const char*> overwrite_file{nullptr};
  std::atomic<int32_t> overwrite_line{0};
  // True if the memory was written since `overwrites` had this value.
  bool overwritten_since(uint64_t saved) const {
    return overwrites.load(std::memory_order_relaxed) != saved ||
           (original && original->overwrites.load(std::memory_order_relaxed) != original_overwrites);
  }
  Chunk& owner() { return original ? *original : *this; }  // the chunk that owns the memory
  std::function<void()> deleter;        // foreign memory (DLPack, NumPy): called instead of returning block to the pool
  std::shared_ptr<const void> mapping;  // of the file that the block is part of; null: the block is no part of a file
  // True if the block belongs to the pool and this chunk may pass it on.
  bool owns_block() const { return !is_foreign() && !original && !mapping; }
  // True if code outside of the library may write the memory at any time: it came from there, or it was exported
  // (GivenOut).
  bool is_foreign() const { return deleter || outside_users.load(std::memory_order_acquire) != 0; }
  std::atomic<int64_t> outside_users{0};
  // Drops copies of the values and stops releasing pages, because the memory is exported or taken back.
  void forget_copies() {
    derived_.keep_pages();
    derived_.drop();
  }

 private:
  void* take_memory();
  // Called after a pin: EvictableValues::release() depends on this order.
  void come_back() {
    if (std::atomic_ref<void*>(block.data).load() == nullptr && deferred_bytes == kReleased) take_memory();
  }
  DerivedData derived_{&var.write_listener()};

 public:
  std::atomic<bool> has_views{false};  // a front end holds views of the memory, or other handles
  // Owned. Null until the tape records an array that shares this memory with another array; then never null again.
  std::atomic<MemoryHistory*> history{nullptr};
};

// From now on writes into this memory record the line that pushed them, because its value was saved.
inline void watch_overwrites(Chunk& lent) {
  Chunk& chunk = lent.owner();
  if (chunk.overwrite_line.load(std::memory_order_relaxed) == 0)
    chunk.overwrite_line.store(-1, std::memory_order_relaxed);
}

// The position of an array in the tape; defined in imperative/tape.
// Owner:   the array and the steps that read it, by reference counting; the array drops it with detach().
// Threads: see NDArray.
class TapeInfo : public RefCounted<TapeInfo> {
 public:
  virtual ~TapeInfo() = default;
};

// An array; NDArray is a handle of one.
// Owner:   handles, tasks and steps of the tape, by reference counting. It dies on the thread that drops the last one.
// Threads: see NDArray.
class ArrayImpl final : public Object {
 public:
  ArrayImpl() = default;
  ~ArrayImpl() override {
    if (!chunk) return;
    if (MemoryHistory* history = chunk->history.load(std::memory_order_acquire)) [[unlikely]]
      history->array_dies(*chunk);
  }
  TensorSpec spec;
  Ref<Chunk> chunk;
  int64_t offset = 0;                // bytes from the start of the block
  std::atomic<bool> pending{false};  // spec and memory come with the task that computes the array
  Ref<TapeInfo> tape;                // null: constant for autograd
  Ref<Object> sparse;                // SparseStorage; null: dense, the values are in the chunk
};

// The storage of the values of an array; numbered as in files.
enum class StorageType : int8_t { kDefault = 0, kRowSparse = 1, kCsr = 2 };
const char* storage_type_name(StorageType type);            // "default", "row_sparse", "csr"
StorageType storage_type_from_name(std::string_view name);  // throws ValueError naming the known ones

// A handle of an array, or of none.
// Owner:   its holder. Copies refer to the same array.
// Threads: several threads may use handles of one array: the engine orders their work on its values. One handle, and
//          the tape mark of one array (recording, attach_grad), belong to one thread at a time. wait_* and copy_* that
//          would have to wait throw EngineError inside a task.
// Throws:  functions that make memory: OutOfMemoryError, and UnsupportedError for a missing device. Waits, and spec()
//          of a pending array, rethrow the error of the task that computes the array. An empty handle must not be used.
class NDArray {
 public:
  NDArray() = default;
  explicit NDArray(Ref<ArrayImpl> impl) : impl_(std::move(impl)) {}
  static NDArray empty(const TensorSpec& spec, Device device = {});
  static NDArray empty(const Shape& shape, DType dtype, Device device = {}) { return empty({shape, dtype}, device); }
  // For the output of a task: the memory is allocated when that task runs, so that work queued far ahead of the workers
  // holds none, and reuses the memory that earlier work has just freed. Large sizes, whose allocation may well fail,
  // are allocated at once, so that the error names the line that asked for them.
  static NDArray deferred(const TensorSpec& spec, Device device = {});
  // Zeros that take no memory until they are first read or written, on a CPU.
  static NDArray deferred_zeros(const TensorSpec& spec, Device device = {});
  // Memory of a private mapping of a file, which `mapping` keeps alive. The system may drop unwritten pages, and so
  // does the library if it keeps a packed copy (DerivedData::drop_pages).
  static NDArray mapped(void* data, const TensorSpec& spec, std::shared_ptr<const void> mapping);
  // Wraps foreign memory; `deleter` runs when the last view dies.
  static NDArray from_memory(void* data, const TensorSpec& spec, std::function<void()> deleter, Device device = {});

  // For the output of a task whose shape is known only after it has run. Reading the spec waits for that task; passing
  // the array on to other tasks does not.
  static NDArray pending(Device device = {});

  // An array in sparse storage. `spec` covers all values, zeros included.
  static NDArray sparse(const TensorSpec& spec, Ref<Object> storage, Device device = {});

  explicit operator bool() const { return static_cast<bool>(impl_); }
  bool is_sparse() const { return static_cast<bool>(impl_->sparse); }
  StorageType storage_type() const;
  bool is_pending() const { return impl_->pending.load(std::memory_order_acquire); }
  const TensorSpec& spec() const {
    if (is_pending()) [[unlikely]]
      wait_for_spec();
    return impl_->spec;
  }
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }
  int ndim() const { return spec().shape.ndim(); }
  int64_t size() const { return spec().shape.size(); }
  int64_t bytes() const { return spec().bytes(); }
  Device device() const { return impl_->chunk->block.device; }
  Var& var() const { return impl_->chunk->order->var; }
  bool is_on_gpu() const { return impl_->chunk->is_on_gpu(); }
  void* data() const { return static_cast<char*>(impl_->chunk->memory()) + impl_->offset; }
  void* address() const { return static_cast<char*>(impl_->chunk->address()) + impl_->offset; }  // see Chunk
  TensorRef ref() const {
    return {data(), &impl_->spec.shape, impl_->spec.dtype, Format::kPlain, impl_->chunk->derived()};
  }
  ArrayImpl* impl() const { return impl_.get(); }
  const Ref<ArrayImpl>& handle() const { return impl_; }
  bool operator==(const NDArray& o) const { return impl_ == o.impl_; }  // the same array, not equal values
  bool shares_memory(const NDArray& o) const { return impl_->chunk == o.impl_->chunk; }

  // Views: same chunk, no copy, no tape (front ends record the matching op). Throw ShapeError / IndexError, and
  // UnsupportedError for sparse arrays, except detached(), which shares their parts.
  NDArray reshaped(const Shape& shape) const;        // the number of elements must stay the same
  NDArray sliced(int64_t begin, int64_t end) const;  // leading axis, begin <= end within bounds
  NDArray at(int64_t index) const;                   // drops the leading axis
  NDArray detached() const;                          // same memory, no tape mark

  // For the task that computes this pending array: takes over the memory of value, or copies it if value does not own
  // it. After a takeover, value shares the memory of this array.
  void publish(const NDArray& value) const;
  // The same memory under a variable of its own, without tape mark: for the parts of a task that holds the variable of
  // this array. overwrites: Chunk::overwrites when the task was pushed. Call end_loan() when the task is over.
  NDArray lent(uint64_t overwrites) const;
  void end_loan() const { impl_->chunk->order = impl_->chunk->original->order; }

  void wait_to_read() const;
  void wait_for_values() const;  // the same for callers that do not use data()
  void wait_to_write() const;
  // Blocking copies between host memory and this array (C order, dtype as is), on whatever device it is.
  void copy_from(const void* source) const;
  void copy_to(void* target) const;

 private:
  void wait_for_spec() const;
  Ref<ArrayImpl> impl_;
};

// While it lives, code outside of tasks may use data() of an array that it has waited for. After wait_to_read() that is
// allowed at any time, but then the values stay in memory for good.
// Owner:   a block of the caller; it keeps the memory alive.
// Threads: any; pins of several threads add up.
class PinnedMemory {
 public:
  explicit PinnedMemory(const NDArray& array) : chunk_(&array.impl()->chunk->owner()) { chunk_->pin(); }
  ~PinnedMemory() { chunk_->unpin(); }
  PinnedMemory(const PinnedMemory&) = delete;

 private:
  const Ref<Chunk> chunk_;
};

// The parts of a sparse array: the stored values and their positions; all other values are zeros.
//   row_sparse: row indices[i] of the array is data[i]. indices (n,) int64 ascending, data (n, ...).
//   csr: a matrix whose row r has data[i] in column indices[i], for i from indptr[r] up to indptr[r + 1]. indptr
//        (rows + 1,) and indices (n,) int64, data (n,).
// A write replaces the parts, so a part held elsewhere keeps its values. Handles of one array share this object.
// Owner:   the array (ArrayImpl::sparse).
// Threads: one at a time; no lock guards the parts.
class SparseStorage final : public Object {
 public:
  SparseStorage(StorageType t, NDArray d, NDArray i, NDArray p = {})
      : type(t), data(std::move(d)), indices(std::move(i)), indptr(std::move(p)) {}
  StorageType type;
  NDArray data, indices, indptr;
  bool checked = false;  // the indices are in bounds, and ascending for row_sparse (sparse.h)
};
inline SparseStorage& sparse_storage(const NDArray& a) { return static_cast<SparseStorage&>(*a.impl()->sparse); }
inline StorageType NDArray::storage_type() const {
  return is_sparse() ? sparse_storage(*this).type : StorageType::kDefault;
}

// Value <-> NDArray for gradient rules.
inline Value to_value(const NDArray& a) { return a ? Value{Ref<Object>(a.impl()), 0} : Value{}; }
inline NDArray to_array(const Value& v) {
  return v ? NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(v.object.get()))) : NDArray();
}

// ------------------------------------------------------------------------------------------- .params files
// Reads and writes the .params format (MXNet 1.x). Every length is checked before use; a broken file throws FormatError
// with the file, the byte offset and the expected value. Sparse records are sparse arrays.
struct LoadedArrays {
  bool named = false;
  std::vector<std::string> names;  // parallel to arrays when named; may repeat
  std::vector<NDArray> arrays;     // null handle for a record without value
};
// If `mapped` is true, large dense arrays are parts of the file instead of copies (NDArray::mapped): processes that
// load one file share them, and they are read from the disk when they are used. Writes into them do not reach the file.
// The file may be replaced (renamed over, deleted), but must not be changed in place while the arrays live.
LoadedArrays load_arrays(const std::string& path, bool mapped = false);
LoadedArrays load_arrays_from_buffer(std::string_view bytes, const std::string& what);
// numpy_shape: write V3 records (scalars and zero sizes have meaning). Scalars or zero-size arrays need V3: chosen per
// record.
void save_arrays(const std::string& path, const std::vector<NDArray>& arrays, const std::vector<std::string>& names,
                 bool numpy_shape);
std::string save_arrays_to_buffer(const std::vector<NDArray>& arrays, const std::vector<std::string>& names,
                                  bool numpy_shape);

}  // namespace hybridnet
