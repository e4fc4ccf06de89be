#include "kernels/memory/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/stream.h"
#include "hybridnet/error.h"
#include "hybridnet/threads.h"
#include "kernels/memory/device_copy.h"

namespace hybridnet::kernels {
namespace {

// Cost per byte: for small copies a second core costs more than it saves.
constexpr double kByteNs = 0.3;
// Longer rows are split, so that few long rows occupy all cores.
constexpr int64_t kRowPieceBytes = 256 << 10;
// The edge of the squares in which two axes are exchanged: a row of source and of destination stays in the first-level
// cache.
constexpr int64_t kTile = 32;

// Words of any alignment that may alias everything.
struct __attribute__((packed, may_alias)) Word1 {
  uint8_t v;
};
struct __attribute__((packed, may_alias)) Word2 {
  uint16_t v;
};
struct __attribute__((packed, may_alias)) Word4 {
  uint32_t v;
};
struct __attribute__((packed, may_alias)) Word8 {
  uint64_t v;
};
struct __attribute__((packed, may_alias)) Word16 {
  uint64_t v[2];
};

template <typename F>
void with_word(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(Word1{});
    case 2:
      return f(Word2{});
    case 4:
      return f(Word4{});
    case 8:
      return f(Word8{});
    default:
      return f(Word16{});
  }
}

typedef uint32_t Vec4 __attribute__((vector_size(16)));
Vec4 load4(const Word4* p) {
  Vec4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store4(Word4* p, Vec4 v) { std::memcpy(p, &v, sizeof v); }

// dst[j * dst_stride + i] = src[i * src_stride + j] for four i and four j.
void exchange_4x4(const Word4* src, int64_t src_stride, Word4* dst, int64_t dst_stride) {
  const Vec4 a = load4(src), b = load4(src + src_stride), c = load4(src + 2 * src_stride),
             d = load4(src + 3 * src_stride);
  const Vec4 ac0 = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac1 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  const Vec4 bd0 = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd1 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  store4(dst, __builtin_shufflevector(ac0, bd0, 0, 4, 1, 5));
  store4(dst + dst_stride, __builtin_shufflevector(ac0, bd0, 2, 6, 3, 7));
  store4(dst + 2 * dst_stride, __builtin_shufflevector(ac1, bd1, 0, 4, 1, 5));
  store4(dst + 3 * dst_stride, __builtin_shufflevector(ac1, bd1, 2, 6, 3, 7));
}

// dst[j * 3 + i] = src[i * src_stride + j] for three i and four j: the colors of pixels.
void interleave_3x4(const Word4* src, int64_t src_stride, Word4* dst) {
  const Vec4 a = load4(src), b = load4(src + src_stride), c = load4(src + 2 * src_stride);
  const Vec4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), bc = __builtin_shufflevector(b, c, 1, 5, 2, 6),
             ab3 = __builtin_shufflevector(a, b, 3, 7, 3, 7);
  store4(dst, __builtin_shufflevector(ab, c, 0, 1, 4, 2));
  store4(dst + 4, __builtin_shufflevector(bc, a, 0, 1, 6, 2));
  store4(dst + 8, __builtin_shufflevector(c, ab3, 2, 4, 5, 3));
}

// dst[j * dst_stride + i] = src[i * src_stride + j]
template <typename W>
void exchange_tile(const W* src, int64_t src_stride, W* dst, int64_t dst_stride, int64_t ni, int64_t nj) {
  int64_t j = 0;
  if constexpr (sizeof(W) == 4) {
    if (ni == 3 && dst_stride == 3)
      for (; j + 4 <= nj; j += 4) interleave_3x4(src + j, src_stride, dst + j * 3);
    for (; j + 4 <= nj; j += 4) {
      int64_t i = 0;
      for (; i + 4 <= ni; i += 4)
        exchange_4x4(src + i * src_stride + j, src_stride, dst + j * dst_stride + i, dst_stride);
      for (; i < ni; ++i) {
        for (int64_t k = j; k < j + 4; ++k) dst[k * dst_stride + i] = src[i * src_stride + k];
      }
    }
  }
  if (ni < nj) {
    for (int64_t i = 0; i < ni; ++i) {
      for (int64_t k = j; k < nj; ++k) dst[k * dst_stride + i] = src[i * src_stride + k];
    }
    return;
  }
  for (; j < nj; ++j) {
    for (int64_t i = 0; i < ni; ++i) dst[j * dst_stride + i] = src[i * src_stride + j];
  }
}

// Calls f(begin, end) for parts of [0, bytes) that begin at multiples of a cache line.
template <typename F>
void for_each_part(int64_t bytes, F&& f) {
  constexpr int64_t kLine = 64;
  constexpr double kLineNs = 5;
  parallel_for((bytes + kLine - 1) / kLine, kLineNs,
               [&](int64_t begin, int64_t end) { f(begin * kLine, std::min(end * kLine, bytes)); });
}

}  // namespace

void copy_bytes(const void* src, void* dst, int64_t bytes) {
  if (device::current()) return on_device::copy_bytes(src, dst, bytes);
  if (src == dst) return;
  for_each_part(bytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(dst) + begin, static_cast<const char*>(src) + begin,
                static_cast<size_t>(end - begin));
  });
}

void zero_bytes(void* dst, int64_t bytes) {
  if (device::current()) return on_device::zero_bytes(dst, bytes);
  for_each_part(bytes, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(dst) + begin, 0, static_cast<size_t>(end - begin));
  });
}

Strides::Strides(const Shape& shape) {
  int64_t stride = 1;
  for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
    values[axis] = stride;
    stride *= shape[axis];
  }
}

void StridedCopy::add_axis(int64_t size, int64_t src_stride, int64_t dst_stride) {
  if (count_ == kMaxAxes) throw Error(ErrorKind::kError, {.message = "strided copy: more than 48 axes"});
  axes_[count_++] = {size, src_stride, dst_stride};
}

// The copy in normal form: axes are merged if they are contiguous, and ordered by destination stride.
struct StridedCopy::Program {
  Axis axes[kMaxAxes];
  int count = 0;
  int64_t bytes = 0;
  bool empty = false;
  const char* src = nullptr;
  char* dst = nullptr;

  Program(const StridedCopy& copy, const void* from, void* to, int64_t element_bytes)
      : bytes(element_bytes), src(static_cast<const char*>(from)), dst(static_cast<char*>(to)) {
    for (int i = 0; i < copy.count_; ++i) {
      const Axis& a = copy.axes_[i];
      if (a.size == 0) empty = true;
      if (a.size != 1) axes[count++] = a;
    }
    if (empty) return;
    // Sorts by stride and keeps the order of axes with equal strides: an insertion sort, because std::stable_sort
    // allocates.
    for (int i = 1; i < count; ++i)
      for (int k = i; k > 0 && std::abs(axes[k].dst) > std::abs(axes[k - 1].dst); --k) std::swap(axes[k], axes[k - 1]);
    merge();
    if (!device::current()) widen();  // a device needs aligned words
  }

  void run_on_device() const {
    device::StridedArguments a{.src = src, .dst = dst, .count = count};
    for (int i = 0; i < count; ++i) a.axes[i] = {axes[i].size, axes[i].src, axes[i].dst};
    on_device::copy_strided(a, bytes);
  }

  void merge() {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      Axis& outer = axes[kept - 1 < 0 ? 0 : kept - 1];
      const Axis& a = axes[i];
      if (kept > 0 && outer.src == a.src * a.size && outer.dst == a.dst * a.size) {
        outer = {outer.size * a.size, a.src, a.dst};
      } else {
        axes[kept++] = a;
      }
    }
    count = kept;
  }

  // A short contiguous run becomes one wider element if all strides are multiples of it.
  void widen() {
    if (count < 2) return;
    const Axis run = axes[count - 1];
    const int64_t wide = run.size * bytes;
    if (run.src != 1 || run.dst != 1 || wide > 16 || (wide & (wide - 1)) != 0) return;
    for (int i = 0; i < count - 1; ++i) {
      if (axes[i].src % run.size != 0 || axes[i].dst % run.size != 0) return;
    }
    for (int i = 0; i < count - 1; ++i) {
      axes[i].src /= run.size;
      axes[i].dst /= run.size;
    }
    bytes = wide;
    --count;
  }

  int64_t outer_size(int axes_used) const {
    int64_t n = 1;
    for (int i = 0; i < axes_used; ++i) n *= axes[i].size;
    return n;
  }
};

namespace {

// Visits the first `count` axes in row-major order from a given position.
template <typename Axis>
class Walk {
 public:
  Walk(const Axis* axes, int count, int64_t position) : axes_(axes), count_(count) {
    for (int i = count - 1; i >= 0; --i) {
      index_[i] = position % axes[i].size;
      position /= axes[i].size;
      src += index_[i] * axes[i].src;
      dst += index_[i] * axes[i].dst;
    }
  }
  void next() {
    for (int i = count_ - 1; i >= 0; --i) {
      src += axes_[i].src;
      dst += axes_[i].dst;
      if (++index_[i] < axes_[i].size) return;
      src -= axes_[i].src * axes_[i].size;
      dst -= axes_[i].dst * axes_[i].size;
      index_[i] = 0;
    }
  }
  int64_t src = 0, dst = 0;

 private:
  const Axis* axes_;
  int count_;
  int64_t index_[StridedCopy::kMaxAxes];
};

template <typename Program>
void copy_runs(const Program& p) {
  const auto& run = p.axes[p.count - 1];
  const int64_t run_bytes = run.size * p.bytes;
  const int64_t pieces = run_bytes <= kRowPieceBytes ? 1 : (run_bytes + kRowPieceBytes - 1) / kRowPieceBytes;
  const int64_t piece_bytes = pieces == 1 ? run_bytes : kRowPieceBytes;
  const int64_t rows = p.outer_size(p.count - 1);
  parallel_for(rows * pieces, kByteNs * static_cast<double>(piece_bytes), [&](int64_t begin, int64_t end) {
    Walk walk(p.axes, p.count - 1, begin / pieces);
    int64_t piece = begin % pieces;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t from = piece * piece_bytes, n = std::min(piece_bytes, run_bytes - from);
      std::memcpy(p.dst + walk.dst * p.bytes + from, p.src + walk.src * p.bytes + from, static_cast<size_t>(n));
      if (++piece == pieces) {
        piece = 0;
        walk.next();
      }
    }
  });
}

// Axis `other` is contiguous in the source, the last axis in the destination.
template <typename W, typename Program>
void copy_exchanged(const Program& p, int other) {
  using Axis = std::remove_cvref_t<decltype(p.axes[0])>;
  const Axis ai = p.axes[p.count - 1], aj = p.axes[other];
  Axis outer[StridedCopy::kMaxAxes];
  int outer_count = 0;
  for (int k = 0; k < p.count - 1; ++k) {
    if (k != other) outer[outer_count++] = p.axes[k];
  }
  // If one side is narrow, the other may be longer.
  const int64_t ti = std::min(ai.size, aj.size < kTile ? kTile * 8 : kTile);
  const int64_t tj = std::min(aj.size, ai.size < kTile ? kTile * 8 : kTile);
  const int64_t tiles_i = (ai.size + ti - 1) / ti, tiles_j = (aj.size + tj - 1) / tj;
  int64_t rest = 1;
  for (int k = 0; k < outer_count; ++k) rest *= outer[k].size;
  const int64_t tile_bytes = ti * tj * static_cast<int64_t>(sizeof(W));
  parallel_for(rest * tiles_i * tiles_j, kByteNs * static_cast<double>(tile_bytes), [&](int64_t begin, int64_t end) {
    int64_t i_tile = begin % tiles_i, j_tile = begin / tiles_i % tiles_j;
    Walk walk(outer, outer_count, begin / (tiles_i * tiles_j));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t i = i_tile * ti, j = j_tile * tj;
      const W* s = reinterpret_cast<const W*>(p.src) + walk.src + i * ai.src + j;
      W* d = reinterpret_cast<W*>(p.dst) + walk.dst + j * aj.dst + i;
      exchange_tile(s, ai.src, d, aj.dst, std::min(ti, ai.size - i), std::min(tj, aj.size - j));
      if (++i_tile == tiles_i) {
        i_tile = 0;
        if (++j_tile == tiles_j) {
          j_tile = 0;
          walk.next();
        }
      }
    }
  });
}

template <typename W>
void copy_row(const W* s, int64_t src_stride, W* d, int64_t dst_stride, int64_t n) {
  if (dst_stride == 1 && src_stride == 1) {
    for (int64_t i = 0; i < n; ++i) d[i] = s[i];
  } else if (dst_stride == 1 && src_stride == 0) {
    const W value = *s;
    for (int64_t i = 0; i < n; ++i) d[i] = value;
  } else if (dst_stride == 1 && src_stride == -1) {
    for (int64_t i = 0; i < n; ++i) d[i] = s[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) d[i * dst_stride] = s[i * src_stride];
  }
}

template <typename W, typename Program>
void copy_elements(const Program& p) {
  const auto last = p.axes[p.count - 1];
  const int64_t rows = p.outer_size(p.count - 1);
  const int64_t piece = std::min<int64_t>(last.size, kRowPieceBytes / static_cast<int64_t>(sizeof(W)));
  const int64_t pieces = (last.size + piece - 1) / piece;
  const int64_t piece_bytes = piece * static_cast<int64_t>(sizeof(W));
  parallel_for(rows * pieces, kByteNs * static_cast<double>(piece_bytes), [&](int64_t begin, int64_t end) {
    Walk walk(p.axes, p.count - 1, begin / pieces);
    int64_t at = begin % pieces * piece;
    for (int64_t item = begin; item < end; ++item) {
      const W* s = reinterpret_cast<const W*>(p.src) + walk.src + at * last.src;
      W* d = reinterpret_cast<W*>(p.dst) + walk.dst + at * last.dst;
      copy_row(s, last.src, d, last.dst, std::min(piece, last.size - at));
      if ((at += piece) >= last.size) {
        at = 0;
        walk.next();
      }
    }
  });
}

}  // namespace

void StridedCopy::run(const void* src, void* dst, int64_t element_bytes) const {
  Program p(*this, src, dst, element_bytes);
  if (p.empty) return;
  if (device::current()) return p.run_on_device();
  if (p.count == 0) {
    std::memcpy(dst, src, static_cast<size_t>(p.bytes));
    return;
  }
  const Axis& last = p.axes[p.count - 1];
  if (last.src == 1 && last.dst == 1 && last.size * p.bytes >= 64) return copy_runs(p);
  if (last.dst == 1 && last.src != 1) {
    for (int k = 0; k < p.count - 1; ++k) {
      if (p.axes[k].src != 1 || p.axes[k].size * last.size < 16) continue;
      return with_word(p.bytes, [&](auto word) { copy_exchanged<decltype(word)>(p, k); });
    }
  }
  with_word(p.bytes, [&](auto word) { copy_elements<decltype(word)>(p); });
}

}  // namespace hybridnet::kernels
