#include "kernels/reduce/arg_extreme.h"

#include <algorithm>
#include <memory>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/reduce/device_reduce.h"

namespace hybridnet::kernels {
namespace {

constexpr int64_t kWidth = ArgExtremeLoops::kMaxWidth;
constexpr int64_t kTile = 2048;  // elements converted at a time

const ArgExtremeLoops& loops_of(Extreme extreme, DType dtype) {
  static const ArgExtremeTable& table = []() -> const ArgExtremeTable& {
    static ArgExtremeTable filled;
    fill_arg_extreme(filled);
    return filled;
  }();
  return table[static_cast<int>(extreme)][static_cast<int>(dtype)];
}

// True if the dtype has loops of its own. Other dtypes are converted to one of these, which holds their values exactly.
bool is_native(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

class Search {
 public:
  Search(Extreme extreme, DType dtype, const void* in, int64_t length, int64_t inner)
      : native_(is_native(dtype)),
        dtype_(dtype),
        searched_(native_ ? dtype : DType::kFloat32),
        loops_(loops_of(extreme, searched_)),
        in_(static_cast<const char*>(in)),
        size_(dtype_size(dtype)),
        length_(length),
        inner_(inner) {}

  // Columns [k, k + width) of rows [first, last) of outer index o. values: 8 bytes per column at most.
  void run(int64_t o, int64_t first, int64_t last, int64_t k, int64_t width, void* values, int64_t* positions) const {
    const int64_t step = piece(width);
    alignas(64) char other[kWidth * 8];
    int64_t there[kWidth];
    for (int64_t row = first; row < last; row += step) {
      const int64_t count = std::min(step, last - row);
      const bool start = row == first;
      search(o, row, count, k, width, start ? values : other, start ? positions : there);
      int64_t* found = start ? positions : there;
      for (int64_t j = 0; j < width; ++j) found[j] += row;
      if (!start) loops_.merge(other, there, width, values, positions);
    }
  }
  void merge(const void* candidates, const int64_t* theirs, int64_t n, void* values, int64_t* positions) const {
    loops_.merge(candidates, theirs, n, values, positions);
  }
  int64_t value_size() const { return dtype_size(searched_); }

 private:
  int64_t piece(int64_t width) const {
    return native_ ? ArgExtremeLoops::kMaxCount : std::max<int64_t>(1, kTile / width);
  }
  void search(int64_t o, int64_t row, int64_t count, int64_t k, int64_t width, void* values, int64_t* positions) const {
    const char* from = in_ + ((o * length_ + row) * inner_ + k) * size_;
    if (native_) return dispatch(from, count, inner_, width, values, positions);
    float tile[kTile];
    for (int64_t r = 0; r < (inner_ == 1 ? 1 : count); ++r) {
      convert(dtype_, from + r * inner_ * size_, DType::kFloat32, tile + r * width, inner_ == 1 ? count : width);
    }
    dispatch(tile, count, width, width, values, positions);
  }
  void dispatch(const void* from, int64_t count, int64_t stride, int64_t width, void* values,
                int64_t* positions) const {
    if (stride == 1) return loops_.row(from, count, values, positions);
    loops_.columns(from, count, stride, width, values, positions);
  }

  bool native_;
  DType dtype_, searched_;
  const ArgExtremeLoops& loops_;
  const char* in_;
  int64_t size_, length_, inner_;
};

}  // namespace

void arg_extreme(Extreme extreme, DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner,
                 DType out_dtype, void* out) {
  constexpr int64_t kTasks = 64, kMinBlock = 16384;
  if (outer == 0 || inner == 0) return;
  if (device::current()) return on_device::arg_extreme(extreme, dtype, in, outer, length, inner, out_dtype, out);
  const Search search(extreme, dtype, in, length, inner);
  const int64_t tiles = (inner + kWidth - 1) / kWidth, units = outer * tiles, outputs = outer * inner;
  const auto width_of = [&](int64_t tile) { return std::min(kWidth, inner - tile * kWidth); };
  const ConvertFn narrow = convert_fn(DType::kInt64, out_dtype);
  const auto store = [&](const int64_t* positions, int64_t first, int64_t n) {
    narrow(positions, static_cast<char*>(out) + first * dtype_size(out_dtype), n);
  };
  // Few outputs over many rows are split along the rows, too: by the shape, never by the number of threads.
  const int64_t wanted = units >= kTasks ? 1 : (kTasks + units - 1) / units;
  const int64_t least = std::max<int64_t>(1, kMinBlock / std::min(inner, kWidth));
  const int64_t rows = std::max(least, (length + wanted - 1) / wanted), blocks = (length + rows - 1) / rows;
  const int64_t work = std::max<int64_t>(1, std::min(rows, length) * std::min(inner, kWidth));
  const double unit_ns = 0.3 * static_cast<double>(work);
  if (blocks == 1) {
    return parallel_for(units, unit_ns, [&](int64_t begin, int64_t end) {
      alignas(64) char values[kWidth * 8];
      int64_t positions[kWidth];
      for (int64_t u = begin; u < end; ++u) {
        const int64_t k = u % tiles * kWidth, width = width_of(u % tiles);
        search.run(u / tiles, 0, length, k, width, values, positions);
        store(positions, u / tiles * inner + k, width);
      }
    });
  }
  const int64_t size = search.value_size();
  const std::unique_ptr<char[]> values(new char[static_cast<size_t>(blocks * outputs * size)]);
  const std::unique_ptr<int64_t[]> positions(new int64_t[static_cast<size_t>(blocks * outputs)]);
  parallel_for(blocks * units, unit_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / units, o = i % units / tiles, tile = i % units % tiles;
      const int64_t at = block * outputs + o * inner + tile * kWidth;
      search.run(o, block * rows, std::min(length, (block + 1) * rows), tile * kWidth, width_of(tile),
                 values.get() + at * size, positions.get() + at);
    }
  });
  for (int64_t block = 1; block < blocks; ++block) {
    const int64_t at = block * outputs;
    search.merge(values.get() + at * size, positions.get() + at, outputs, values.get(), positions.get());
  }
  store(positions.get(), 0, outputs);
}

}  // namespace hybridnet::kernels
