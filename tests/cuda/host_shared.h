// Shared memory that knows, for each element, its last writer and readers in the epoch between two barriers. An access
// that no barrier orders is reported with the kernel, the element and both threads. Works for reads, writes and
// compound assignments of elements; a pointer to plain T ends the checks of the array until the block ends.
// HN_UNCHECKED_SHARED turns the checks off.
#ifdef HN_EMBED
HN_EMBED(host_shared)
#else
#pragma once

#include "host_interface.h"

#define __syncthreads() hn_services->barrier(__LINE__)

#ifdef HN_UNCHECKED_SHARED
#define HN_SHARED(T, name, count) \
  static T name[count];           \
  static_assert(sizeof(name) <= 49152, "more than 48 KiB of shared memory")
#define HN_SHARED_POINTER(T) T*
#else
#define HN_SHARED(T, name, count)                                                   \
  static hn_host::SharedArray<T, (count)> hn_array_##name;                          \
  static_assert(sizeof(T) * (count) <= 49152, "more than 48 KiB of shared memory"); \
  const hn_host::SharedPointer<T> name = hn_array_##name.pointer(#name)
#define HN_SHARED_POINTER(T) hn_host::SharedPointer<T>

namespace hn_host {

constexpr unsigned short kSeveralOfWarp = kSeveralReaders, kAtomic = kAtomicWriter, kSeveral = 0xffff;

struct Cell {
  unsigned write_epoch, read_epoch;
  unsigned write_warp_epoch, read_warp_epoch;
  unsigned short writer, reader;
};

// The state that all elements of an array share.
struct ArrayState {
  const char* name;
  long long count;
  unsigned plain_epoch;  // the block in which a plain pointer was taken
};

// Accesses of two threads of one warp are ordered by __syncwarp, too.
static inline bool ordered_in_warp(unsigned short other, unsigned warp_epoch) {
  const unsigned warp = hn_services->thread / 32;
  const bool same_warp = other < kSeveralOfWarp ? other / 32u == warp : other == kSeveralOfWarp + warp;
  return same_warp && warp_epoch != hn_services->warp_epoch[warp];
}

static inline void note_read(const ArrayState& array, Cell& cell, long long index) {
  const Services& s = *hn_services;
  if (array.plain_epoch == s.block_epoch) return;
  const auto self = static_cast<unsigned short>(s.thread);
  if (cell.write_epoch < s.block_epoch) s.shared_fault(array.name, index, self, SharedFault::kNeverWritten);
  if (cell.write_epoch == s.epoch && cell.writer != self && !ordered_in_warp(cell.writer, cell.write_warp_epoch))
    s.shared_fault(array.name, index, cell.writer, SharedFault::kReadAfterWrite);
  const unsigned warp = self / 32u, warp_epoch = s.warp_epoch[warp];
  if (cell.read_epoch != s.epoch || ordered_in_warp(cell.reader, cell.read_warp_epoch)) {
    cell.reader = self;
  } else if (cell.reader != self && cell.reader != kSeveralOfWarp + warp) {
    const bool of_warp = cell.reader < kSeveralOfWarp && cell.reader / 32u == warp;
    cell.reader = of_warp ? static_cast<unsigned short>(kSeveralOfWarp + warp) : kSeveral;
  }
  cell.read_epoch = s.epoch;
  cell.read_warp_epoch = warp_epoch;
}

static inline void note_write(const ArrayState& array, Cell& cell, long long index, bool atomic = false) {
  const Services& s = *hn_services;
  if (array.plain_epoch == s.block_epoch) return;
  const auto self = static_cast<unsigned short>(s.thread);
  const unsigned short code = atomic ? kAtomic : self;
  if (cell.write_epoch == s.epoch && cell.writer != code && !ordered_in_warp(cell.writer, cell.write_warp_epoch))
    s.shared_fault(array.name, index, cell.writer, SharedFault::kWriteAfterWrite);
  if (cell.read_epoch == s.epoch && cell.reader != self && !ordered_in_warp(cell.reader, cell.read_warp_epoch))
    s.shared_fault(array.name, index, cell.reader, SharedFault::kWriteAfterRead);
  cell.write_epoch = s.epoch;
  cell.write_warp_epoch = s.warp_epoch[self / 32u];
  cell.writer = code;
}

template <class T>
class SharedPointer;

// An element: converts to T by a read, and takes assignments.
template <class T>
class SharedElement {
 public:
  SharedElement(T* value, Cell* cell, ArrayState* array, long long index)
      : value_(value), cell_(cell), array_(array), index_(index) {}
  SharedElement(const SharedElement&) = default;

  operator T() const { return load(); }
  T load() const {
    note_read(*array_, *cell_, index_);
    return *value_;
  }
  T store(T value) const {
    note_write(*array_, *cell_, index_);
    return *value_ = value;
  }
  T operator=(T value) const { return store(value); }
  T operator=(const SharedElement& other) const { return store(other.load()); }
  template <class U>
  T operator+=(U x) const {
    return store(static_cast<T>(load() + x));
  }
  template <class U>
  T operator-=(U x) const {
    return store(static_cast<T>(load() - x));
  }
  template <class U>
  T operator*=(U x) const {
    return store(static_cast<T>(load() * x));
  }
  template <class U>
  T operator/=(U x) const {
    return store(static_cast<T>(load() / x));
  }
  template <class U>
  T operator|=(U x) const {
    return store(static_cast<T>(load() | x));
  }
  template <class U>
  T operator&=(U x) const {
    return store(static_cast<T>(load() & x));
  }
  template <class U>
  T operator^=(U x) const {
    return store(static_cast<T>(load() ^ x));
  }
  T operator++() const { return store(static_cast<T>(load() + T(1))); }
  T operator--() const { return store(static_cast<T>(load() - T(1))); }
  T operator++(int) const {
    const T before = load();
    store(static_cast<T>(before + T(1)));
    return before;
  }
  SharedPointer<T> operator&() const { return {value_, cell_, array_, index_}; }

 private:
  T* value_;
  Cell* cell_;
  ArrayState* array_;
  long long index_;
};

// A position in an array of shared memory: HN_SHARED declares one, and `&tile[i]` and `tile + i` give one.
template <class T>
class SharedPointer {
 public:
  SharedPointer(T* value, Cell* cell, ArrayState* array, long long index)
      : value_(value), cell_(cell), array_(array), index_(index) {}

  template <class Integer>
  SharedElement<T> operator[](Integer i) const {
    const long long index = index_ + static_cast<long long>(i);
    if (index < 0 || index >= array_->count) {
      hn_services->shared_fault(array_->name, index, hn_services->thread, SharedFault::kOutOfRange);
      return {value_ - index_, cell_ - index_, array_, 0};
    }
    return {value_ + static_cast<long long>(i), cell_ + static_cast<long long>(i), array_, index};
  }
  SharedElement<T> operator*() const { return (*this)[0]; }
  SharedPointer operator+(long long i) const { return {value_ + i, cell_ + i, array_, index_ + i}; }
  operator T*() const {
    array_->plain_epoch = hn_services->block_epoch;
    return value_;
  }
  T* atomic() const {
    note_write(*array_, *cell_, index_, true);
    return value_;
  }

 private:
  T* value_;
  Cell* cell_;
  ArrayState* array_;
  long long index_;
};

template <class T, long long kCount>
struct SharedArray {
  alignas(16) unsigned char bytes[sizeof(T) * kCount];
  Cell cells[kCount];
  ArrayState state;

  SharedPointer<T> pointer(const char* name) {
    state.name = name;
    state.count = kCount;
    return {reinterpret_cast<T*>(bytes), cells, &state, 0};
  }
};

template <class T, class U>
inline T atomicAdd(const SharedPointer<T>& at, U value) {
  return ::atomicAdd(at.atomic(), static_cast<T>(value));
}
template <class T, class U>
inline T atomicMax(const SharedPointer<T>& at, U value) {
  return ::atomicMax(at.atomic(), static_cast<T>(value));
}
template <class T, class U>
inline T atomicMin(const SharedPointer<T>& at, U value) {
  return ::atomicMin(at.atomic(), static_cast<T>(value));
}

}  // namespace hn_host
#endif
#endif
