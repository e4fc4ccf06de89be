#include "kernels/elementwise/pointwise.h"

#include <array>
#include <cstring>

#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/loop_tables.h"

namespace hybridnet::kernels {
namespace {

constexpr int kMaxInputs = 4;
constexpr int64_t kTile = 512;  // elements; four tiles of float64 stay in a first-level cache

using Table = std::array<SpanLoops, static_cast<size_t>(Pointwise::kCount)>;

const Table& table() {
  static const Table filled = [] {
    Table t;
    fill_arithmetic(t.data());
    fill_compare(t.data());
    fill_integers(t.data());
    fill_simple(t.data());
    fill_exponential(t.data());
    fill_trigonometric(t.data());
    fill_special(t.data());
    fill_activation(t.data());
    return t;
  }();
  return filled;
}

bool is_repeated(Repeat repeat, int input) { return static_cast<int>(repeat) == input + 1; }

}  // namespace

const SpanLoops& loops(Pointwise function) { return table()[static_cast<size_t>(function)]; }

void apply_through(const SpanLoops& loops, DType dtype, DType through, const void* const* in, void* out, int64_t n,
                   const double* scalars, Repeat repeat) {
  const SpanFn fn = loops.fn[static_cast<int>(repeat)][static_cast<int>(through)];
  const ConvertFn widen = convert_fn(dtype, through), narrow = convert_fn(through, dtype);
  const int64_t size = dtype_size(dtype);
  alignas(64) double tiles[kMaxInputs + 1][kTile];
  const void* tile_in[kMaxInputs];
  for (int k = 0; k < loops.arity; ++k) {
    tile_in[k] = tiles[k];
    if (is_repeated(repeat, k)) widen(in[k], tiles[k], 1);
  }
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    for (int k = 0; k < loops.arity; ++k) {
      if (!is_repeated(repeat, k)) widen(static_cast<const char*>(in[k]) + i * size, tiles[k], m);
    }
    fn(tile_in, tiles[kMaxInputs], m, scalars);
    narrow(tiles[kMaxInputs], static_cast<char*>(out) + i * size, m);
  }
}

void apply(const SpanLoops& loops, DType dtype, const void* const* in, void* out, int64_t n, const double* scalars,
           Repeat repeat) {
  if (const SpanFn fn = loops.fn[static_cast<int>(repeat)][static_cast<int>(dtype)]) return fn(in, out, n, scalars);
  apply_through(loops, dtype, is_floating(dtype) ? DType::kFloat32 : DType::kFloat64, in, out, n, scalars, repeat);
}

void apply_parallel(const SpanLoops& loops, DType dtype, const void* const* in, void* out, int64_t n,
                    const double* scalars, Repeat repeat) {
  if (is_work_for_one_core(n, loops.cost_ns)) return apply(loops, dtype, in, out, n, scalars, repeat);
  const int64_t size = dtype_size(dtype);
  parallel_for(n, loops.cost_ns, [&](int64_t begin, int64_t end) {
    const void* part[kMaxInputs];
    for (int k = 0; k < loops.arity; ++k) {
      part[k] = is_repeated(repeat, k) ? in[k] : static_cast<const char*>(in[k]) + begin * size;
    }
    apply(loops, dtype, part, static_cast<char*>(out) + begin * size, end - begin, scalars, repeat);
  });
}

void store_scalar(DType dtype, double value, void* out) { convert(DType::kFloat64, &value, dtype, out, 1); }

}  // namespace hybridnet::kernels
