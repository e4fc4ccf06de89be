#include "kernels/elementwise/broadcast.h"

#include <algorithm>
#include <cstring>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/device_map.h"

namespace hybridnet::kernels {
namespace {

constexpr int64_t kShortRow = 48;     // calls on shorter rows cost more than the work: rows are gathered into tiles
constexpr int64_t kTileBytes = 8192;  // per operand

// The position of a row: its index along all axes but the innermost, and the offset of each operand.
struct RowCursor {
  RowCursor(const BroadcastLayout& layout, int64_t row) : layout_(layout) {
    for (int k = 0; k < layout.operands; ++k) offset[k] = 0;
    for (int axis = layout.ndim - 2; axis >= 0; --axis) {
      index_[axis] = row % layout.dims[axis];
      row /= layout.dims[axis];
      for (int k = 0; k < layout.operands; ++k) offset[k] += index_[axis] * layout.strides[k][axis];
    }
  }
  void next() {
    for (int axis = layout_.ndim - 2; axis >= 0; --axis) {
      for (int k = 0; k < layout_.operands; ++k) offset[k] += layout_.strides[k][axis];
      if (++index_[axis] < layout_.dims[axis]) return;
      index_[axis] = 0;
      for (int k = 0; k < layout_.operands; ++k) offset[k] -= layout_.dims[axis] * layout_.strides[k][axis];
    }
  }
  int64_t offset[BroadcastLayout::kMaxOperands];

 private:
  const BroadcastLayout& layout_;
  int64_t index_[kMaxDims];
};

template <class U>
void expand_typed(const BroadcastLayout& layout, int operand, const U* in, int64_t begin, int64_t end, U* out) {
  const int64_t inner = layout.inner();
  const bool repeated = layout.inner_stride(operand) == 0;
  RowCursor cursor(layout, begin);
  for (int64_t row = begin; row < end; ++row, out += inner, cursor.next()) {
    const U* from = in + cursor.offset[operand];
    if (repeated) {
      std::fill_n(out, inner, *from);
    } else if (inner >= 16) {
      std::memcpy(out, from, static_cast<size_t>(inner) * sizeof(U));
    } else {
      for (int64_t i = 0; i < inner; ++i) out[i] = from[i];
    }
  }
}

const char* at(const void* memory, int64_t index, int64_t item_size) {
  return static_cast<const char*>(memory) + index * item_size;
}

// True if the operand repeats after every row (a bias of few channels): one filled tile serves all rows.
bool same_every_row(const BroadcastLayout& layout, int operand) {
  for (int axis = 0; axis < layout.ndim - 1; ++axis)
    if (layout.strides[operand][axis] != 0) return false;
  return true;
}

// out[i] = f(in...) != 0, tile by tile.
void apply_predicate(const SpanLoops& loops, DType dtype, const void* const* in, bool* out, int64_t n, Repeat repeat) {
  alignas(64) char tile[kTileBytes];
  const int64_t size = dtype_size(dtype), step = kTileBytes / size;
  const ConvertFn to_bool = convert_fn(dtype, DType::kBool);
  for (int64_t i = 0; i < n; i += step) {
    const int64_t count = std::min(step, n - i);
    const void* part[2] = {repeat == Repeat::kFirst ? in[0] : at(in[0], i, size),
                           repeat == Repeat::kSecond ? in[1] : at(in[1], i, size)};
    apply(loops, dtype, part, tile, count, nullptr, repeat);
    to_bool(tile, out + i, count);
  }
}

struct BinaryCall {
  const SpanLoops& loops;
  DType dtype;
  int64_t size;  // bytes of an element
  const BroadcastLayout& layout;
  const void* in[2];
  void* out;
  bool predicate = false;  // out has dtype bool

  void write(const void* const* part, int64_t begin, int64_t n, Repeat repeat = Repeat::kNone) const {
    if (predicate) return apply_predicate(loops, dtype, part, static_cast<bool*>(out) + begin, n, repeat);
    apply(loops, dtype, part, static_cast<char*>(out) + begin * size, n, nullptr, repeat);
  }

  void long_rows(int64_t begin, int64_t end) const {
    const int64_t inner = layout.inner();
    const Repeat repeat = layout.inner_stride(0) == 0   ? Repeat::kFirst
                          : layout.inner_stride(1) == 0 ? Repeat::kSecond
                                                        : Repeat::kNone;
    RowCursor cursor(layout, begin);
    for (int64_t row = begin; row < end; ++row, cursor.next()) {
      const void* part[2] = {at(in[0], cursor.offset[0], size), at(in[1], cursor.offset[1], size)};
      write(part, row * inner, inner, repeat);
    }
  }

  void short_rows(int64_t begin, int64_t end) const {
    const int64_t inner = layout.inner();
    const int64_t rows_per_tile = std::max<int64_t>(1, kTileBytes / size / inner);
    alignas(64) char tiles[2][kTileBytes];
    bool filled[2] = {false, false};
    for (int64_t row = begin; row < end; row += rows_per_tile) {
      const int64_t stop = std::min(end, row + rows_per_tile);
      const void* part[2];
      for (int k = 0; k < 2; ++k) {
        if (layout.whole(k)) {
          part[k] = at(in[k], row * inner, size);
          continue;
        }
        if (!filled[k]) expand_rows(layout, k, in[k], size, row, stop, tiles[k]);
        filled[k] = same_every_row(layout, k);
        part[k] = tiles[k];
      }
      write(part, row * inner, (stop - row) * inner);
    }
  }
};

}  // namespace

int64_t BroadcastLayout::rows() const {
  int64_t n = 1;
  for (int axis = 0; axis < ndim - 1; ++axis) n *= dims[axis];
  return n;
}

bool BroadcastLayout::whole(int operand) const {
  int64_t expected = 1;
  for (int axis = ndim - 1; axis >= 0; --axis) {
    if (strides[operand][axis] != expected) return false;
    expected *= dims[axis];
  }
  return true;
}

BroadcastLayout broadcast_layout(const Shape& out, std::initializer_list<const Shape*> inputs) {
  BroadcastLayout layout;
  layout.operands = static_cast<int>(inputs.size());
  // Innermost axis first; reversed at the end.
  int64_t step[BroadcastLayout::kMaxOperands];
  std::fill_n(step, layout.operands, 1);
  int n = 0;
  for (int axis = out.ndim() - 1; axis >= 0; --axis) {
    const int64_t dim = out[axis];
    if (dim == 1) continue;
    int64_t stride[BroadcastLayout::kMaxOperands];
    bool merges = n > 0;
    int k = 0;
    for (const Shape* shape : inputs) {
      const int own = axis - (out.ndim() - shape->ndim());
      const bool repeated = own < 0 || (*shape)[own] == 1;
      stride[k] = repeated ? 0 : step[k];
      if (!repeated) step[k] *= dim;
      // Merges with the next inner axis if one step here equals a full run of that axis.
      if (n > 0 && stride[k] != layout.strides[k][n - 1] * layout.dims[n - 1]) merges = false;
      ++k;
    }
    if (merges) {
      layout.dims[n - 1] *= dim;
      continue;
    }
    layout.dims[n] = dim;
    for (k = 0; k < layout.operands; ++k) layout.strides[k][n] = stride[k];
    ++n;
  }
  if (n == 0) {
    layout.dims[0] = 1;
    for (int k = 0; k < layout.operands; ++k) layout.strides[k][0] = 1;
    n = 1;
  }
  layout.ndim = n;
  std::reverse(layout.dims, layout.dims + n);
  for (int k = 0; k < layout.operands; ++k) std::reverse(layout.strides[k], layout.strides[k] + n);
  return layout;
}

void apply_broadcast(const SpanLoops& loops, DType dtype, const void* a, const Shape& a_shape, const void* b,
                     const Shape& b_shape, void* out, const Shape& out_shape) {
  const void* in[2] = {a, b};
  const int64_t n = out_shape.size();
  if (n == 0) return;
  const int64_t a_size = a_shape.size(), b_size = b_shape.size();
  if (a_size == n && b_size == n) return apply_parallel(loops, dtype, in, out, n);
  if (b_size == 1) return apply_parallel(loops, dtype, in, out, n, nullptr, Repeat::kSecond);
  if (a_size == 1) return apply_parallel(loops, dtype, in, out, n, nullptr, Repeat::kFirst);
  const BroadcastLayout layout = broadcast_layout(out_shape, {&a_shape, &b_shape});
  if (device::current()) return broadcast_on_device({loops, dtype}, layout, in, out);
  const BinaryCall call{loops, dtype, dtype_size(dtype), layout, {a, b}, out};
  const bool is_short = layout.inner() < kShortRow;
  const double row_ns = (loops.cost_ns + (is_short ? 0.5 : 0)) * static_cast<double>(layout.inner());
  parallel_for(layout.rows(), row_ns, [&](int64_t begin, int64_t end) {
    is_short ? call.short_rows(begin, end) : call.long_rows(begin, end);
  });
}

void apply_broadcast_predicate(const SpanLoops& loops, DType dtype, const void* a, const Shape& a_shape, const void* b,
                               const Shape& b_shape, bool* out, const Shape& out_shape) {
  const int64_t n = out_shape.size(), size = dtype_size(dtype);
  if (n == 0) return;
  if (device::current()) {
    const void* in[2] = {a, b};
    return broadcast_on_device({.loops = loops, .dtype = dtype, .is_predicate = true},
                               broadcast_layout(out_shape, {&a_shape, &b_shape}), in, out);
  }
  const int64_t a_size = a_shape.size(), b_size = b_shape.size();
  if ((a_size == n || a_size == 1) && (b_size == n || b_size == 1)) {
    const Repeat repeat = b_size < n ? Repeat::kSecond : a_size < n ? Repeat::kFirst : Repeat::kNone;
    parallel_for(n, loops.cost_ns, [&](int64_t begin, int64_t end) {
      const void* part[2] = {repeat == Repeat::kFirst ? a : at(a, begin, size),
                             repeat == Repeat::kSecond ? b : at(b, begin, size)};
      apply_predicate(loops, dtype, part, out + begin, end - begin, repeat);
    });
    return;
  }
  const BroadcastLayout layout = broadcast_layout(out_shape, {&a_shape, &b_shape});
  const BinaryCall call{loops, dtype, size, layout, {a, b}, out, true};
  const bool is_short = layout.inner() < kShortRow;
  parallel_for(
      layout.rows(), (loops.cost_ns + 0.5) * static_cast<double>(layout.inner()),
      [&](int64_t begin, int64_t end) { is_short ? call.short_rows(begin, end) : call.long_rows(begin, end); });
}

void expand_rows(const BroadcastLayout& layout, int operand, const void* in, int64_t item_size, int64_t begin,
                 int64_t end, void* out) {
  switch (item_size) {
    case 1:
      return expand_typed(layout, operand, static_cast<const uint8_t*>(in), begin, end, static_cast<uint8_t*>(out));
    case 2:
      return expand_typed(layout, operand, static_cast<const uint16_t*>(in), begin, end, static_cast<uint16_t*>(out));
    case 4:
      return expand_typed(layout, operand, static_cast<const uint32_t*>(in), begin, end, static_cast<uint32_t*>(out));
    default:
      return expand_typed(layout, operand, static_cast<const uint64_t*>(in), begin, end, static_cast<uint64_t*>(out));
  }
}

void broadcast_copy(const void* in, const Shape& in_shape, int64_t item_size, void* out, const Shape& out_shape) {
  if (out_shape.size() == 0) return;
  BroadcastLayout layout = broadcast_layout(out_shape, {&in_shape});
  if (device::current()) {
    return broadcast_copy_on_device(layout, in, item_size, out);
  }
  // One long row is split, so that several cores can fill it.
  constexpr int64_t kPiece = 16384;
  if (layout.ndim == 1 && layout.inner() > kPiece) {
    const bool repeated = layout.inner_stride(0) == 0;
    const int64_t n = layout.inner();
    parallel_for((n + kPiece - 1) / kPiece, 0.5 * static_cast<double>(kPiece), [&](int64_t begin, int64_t end) {
      BroadcastLayout piece = layout;
      const int64_t first = begin * kPiece;
      piece.dims[0] = std::min(n, end * kPiece) - first;
      expand_rows(piece, 0, repeated ? in : at(in, first, item_size), item_size, 0, 1,
                  static_cast<char*>(out) + first * item_size);
    });
    return;
  }
  const int64_t inner = layout.inner();
  parallel_for(layout.rows(), 0.25 * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    expand_rows(layout, 0, in, item_size, begin, end, static_cast<char*>(out) + begin * inner * item_size);
  });
}

}  // namespace hybridnet::kernels
