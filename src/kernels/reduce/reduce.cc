#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/integers.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/reduce/device_reduce.h"
#include "kernels/reduce/reduce_stages.h"

namespace hybridnet::kernels {
namespace {

constexpr int64_t kRowBlock = kReduceRowBlock;
constexpr int64_t kWidth = ReduceLoops::kMaxWidth;
constexpr int64_t kNarrow = 32;  // narrower matrices are read as wide ones, with several rows side by side

const ReduceLoops& reduce_loops(Reduction reduction, DType dtype) {
  static const ReduceTable& table = []() -> const ReduceTable& {
    static ReduceTable filled;
    fill_reduce(filled);
    return filled;
  }();
  return table[static_cast<int>(reduction)][static_cast<int>(dtype)];
}

// Stores finished accumulators in the output's dtype.
class Store {
 public:
  Store(Finish finish, int64_t reduced_count, DType accumulator, DType out_dtype, void* out)
      : finish_(finish),
        count_(reduced_count),
        accumulator_(accumulator),
        out_dtype_(out_dtype),
        out_size_(dtype_size(out_dtype)),
        narrow_(convert_fn(accumulator, out_dtype)),
        out_(static_cast<char*>(out)) {}

  void operator()(void* acc, int64_t first, int64_t n) const {
    if (finish_ == Finish::kDivide) divide(acc, n);
    if (finish_ == Finish::kSqrt) root(acc, n);
    narrow_(acc, out_ + first * out_size_, n);
  }

 private:
  void divide(void* acc, int64_t n) const {
    if (accumulator_ == DType::kFloat64) {
      double* values = static_cast<double*>(acc);
      for (int64_t i = 0; i < n; ++i) values[i] /= static_cast<double>(count_);
    } else {
      int64_t* values = static_cast<int64_t*>(acc);
      for (int64_t i = 0; i < n; ++i) values[i] = count_ == 0 ? 0 : values[i] / count_;
    }
  }
  void root(void* acc, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      if (accumulator_ == DType::kFloat64) {
        double& value = static_cast<double*>(acc)[i];
        value = std::sqrt(value);
      } else {
        int64_t& value = static_cast<int64_t*>(acc)[i];
        value = to_integer(std::sqrt(static_cast<double>(value)));
      }
    }
  }

  Finish finish_;
  int64_t count_;
  DType accumulator_, out_dtype_;
  int64_t out_size_;
  ConvertFn narrow_;
  char* out_;
};

// One reduction of an (outer, reduced, inner) block of elements, or of accumulators, into `store`.
struct Stage {
  const ReduceLoops& loops;
  bool of_accumulators;  // the input consists of accumulators
  const char* in;
  int64_t in_size;  // bytes of an input element
  int64_t acc_size;
  int64_t outer, reduced, inner;

  void columns(const char* from, int64_t count, int64_t stride, int64_t width, char* acc) const {
    (of_accumulators ? loops.merge : loops.columns)(from, count, stride, width, acc);
  }
  const char* at(int64_t o, int64_t r, int64_t k) const { return in + ((o * reduced + r) * inner + k) * in_size; }

  template <class StoreFn>
  void run(const StoreFn& store) const {
    if (reduced == 0) return run_empty(store);
    if (inner == 1 && !of_accumulators) return run_rows(store);
    run_columns(store);
  }

  template <class StoreFn>
  void run_empty(const StoreFn& store) const {
    alignas(64) char acc[kWidth * 8];
    const int64_t n = outer * inner;
    for (int64_t i = 0; i < n; i += kWidth) {
      const int64_t m = std::min(kWidth, n - i);
      loops.clear(acc, m);
      store(acc, i, m);
    }
  }

  template <class StoreFn>
  void run_rows(const StoreFn& store) const {
    const int64_t blocks = (reduced + kRowBlock - 1) / kRowBlock;
    if (blocks == 1) {
      return parallel_for(outer, 0.25 * static_cast<double>(reduced), [&](int64_t begin, int64_t end) {
        alignas(64) char acc[kWidth * 8];
        for (int64_t o = begin; o < end; o += kWidth) {
          const int64_t m = std::min(kWidth, end - o);
          loops.rows(at(o, 0, 0), m, reduced, acc);
          store(acc, o, m);
        }
      });
    }
    const std::unique_ptr<char[]> partial(new char[static_cast<size_t>(outer * blocks * acc_size)]);
    parallel_for(outer * blocks, 0.25 * static_cast<double>(kRowBlock), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kRowBlock;
        loops.rows(at(i / blocks, first, 0), 1, std::min(kRowBlock, reduced - first), partial.get() + i * acc_size);
      }
    });
    for (int64_t o = 0; o < outer; ++o) {
      alignas(8) char acc[8];
      loops.clear(acc, 1);
      loops.merge(partial.get() + o * blocks * acc_size, blocks, 1, 1, acc);
      store(acc, o, 1);
    }
  }

  // Combines elements [k, k + width) of rows [first, last) of outer index o into cleared accumulators.
  void column_block(int64_t o, int64_t first, int64_t last, int64_t k, int64_t width, char* acc) const {
    loops.clear(acc, width);
    const int64_t side = inner < kNarrow ? (2 * kNarrow) / inner : 1;  // rows read side by side
    if (side > 1 && last - first >= 2 * side) {
      alignas(64) char wide[2 * kNarrow * 8];
      const int64_t tall = (last - first) / side, span = side * inner;
      loops.clear(wide, span);
      columns(at(o, first, 0), tall, span, span, wide);
      loops.merge(wide, side, inner, inner, acc);
      first += tall * side;
    }
    columns(at(o, first, k), last - first, inner, width, acc);
  }

  template <class StoreFn>
  void run_columns(const StoreFn& store) const {
    const int64_t tiles = (inner + kWidth - 1) / kWidth;
    const int64_t units = outer * tiles;
    const ColumnBlocks split(outer, reduced, inner);
    const int64_t rows_per_block = split.rows, blocks = split.blocks;
    const int64_t work = rows_per_block * std::min(inner, kWidth);
    const double unit_ns = 0.25 * static_cast<double>(std::min(work, reduced * inner));
    const auto width_of = [&](int64_t tile) { return std::min(kWidth, inner - tile * kWidth); };
    if (blocks == 1) {
      return parallel_for(units, unit_ns, [&](int64_t begin, int64_t end) {
        alignas(64) char acc[kWidth * 8];
        for (int64_t u = begin; u < end; ++u) {
          const int64_t o = u / tiles, tile = u % tiles;
          column_block(o, 0, reduced, tile * kWidth, width_of(tile), acc);
          store(acc, o * inner + tile * kWidth, width_of(tile));
        }
      });
    }
    // partial[block][outer * inner]
    const int64_t outputs = outer * inner;
    const std::unique_ptr<char[]> partial(new char[static_cast<size_t>(blocks * outputs * acc_size)]);
    parallel_for(blocks * units, unit_ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / units, u = i % units, o = u / tiles, tile = u % tiles;
        const int64_t first = block * rows_per_block;
        column_block(o, first, std::min(reduced, first + rows_per_block), tile * kWidth, width_of(tile),
                     partial.get() + (block * outputs + o * inner + tile * kWidth) * acc_size);
      }
    });
    for (int64_t i = 0; i < outputs; i += kWidth) {
      alignas(64) char acc[kWidth * 8];
      const int64_t m = std::min(kWidth, outputs - i);
      loops.clear(acc, m);
      loops.merge(partial.get() + i * acc_size, blocks, outputs, m, acc);
      store(acc, i, m);
    }
  }
};

}  // namespace

void reduce(Reduction reduction, Finish finish, DType dtype, const void* in, const Shape& shape, uint32_t axes,
            DType out_dtype, void* out) {
  if (device::current()) return on_device::reduce(reduction, finish, dtype, in, shape, axes, out_dtype, out);
  const ReduceLoops& loops = reduce_loops(reduction, dtype);
  const ReduceStages plan(shape, axes);
  const Store store(finish, plan.reduced_count, loops.accumulator, out_dtype, out);
  const int64_t acc_size = dtype_size(loops.accumulator);
  Stage stage{loops, false, static_cast<const char*>(in), dtype_size(dtype), acc_size, 1, 1, 1};
  std::optional<OwnedBlock> rooms[2];  // a stage reads one and writes the other
  for (int i = 0; i < plan.count; ++i) {
    stage.outer = plan.stages[i].outer;
    stage.reduced = plan.stages[i].reduced;
    stage.inner = plan.stages[i].inner;
    if (i + 1 == plan.count) return stage.run(store);
    OwnedBlock& next = rooms[i % 2].emplace(stage.outer * stage.inner * acc_size);
    char* const to = static_cast<char*>(next.data());
    stage.run([&](const void* acc, int64_t first, int64_t n) {
      std::copy_n(static_cast<const char*>(acc), n * acc_size, to + first * acc_size);
    });
    stage.in = to;
    stage.in_size = acc_size;
    stage.of_accumulators = true;
  }
}

}  // namespace hybridnet::kernels
