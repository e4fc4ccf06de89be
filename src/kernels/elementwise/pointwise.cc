#include "kernels/elementwise/pointwise.h"

#include <array>
#include <cstring>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/device_map.h"
#include "kernels/elementwise/loop_tables.h"

namespace hybridnet::kernels {
namespace {

constexpr int kMaxInputs = 4;
constexpr int64_t kTile = 512;  // elements; four tiles of float64 stay in a first-level cache

using Table = std::array<SpanLoops, static_cast<size_t>(Pointwise::kCount)>;

const Table& table() {
  static const Table filled = [] {
    Table t;
    const auto fill = [&t](void (*rows)(SpanLoops*), const char* functors) {
      rows(t.data());
      for (SpanLoops& loops : t) {
        if (loops.arity > 0 && !loops.functors) loops.functors = functors;
      }
    };
    fill(fill_arithmetic, "kernels/functors/arithmetic.h");
    fill(fill_compare, "kernels/functors/comparisons.h");
    fill(fill_integers, "kernels/functors/integers.h");
    fill(fill_simple, "kernels/functors/simple.h");
    fill(fill_exponential, "kernels/functors/exponentials.h");
    fill(fill_trigonometric, "kernels/functors/trigonometry.h");
    fill(fill_special, "kernels/functors/special.h");
    fill(fill_activation, "kernels/functors/activations.h");
    return t;
  }();
  return filled;
}

bool is_repeated(Repeat repeat, int input) { return static_cast<int>(repeat) == input + 1; }

}  // namespace

const SpanLoops& loops(Pointwise function) { return table()[static_cast<size_t>(function)]; }

void apply_through(const SpanLoops& loops, DType dtype, DType through, const void* const* in, void* out, int64_t n,
                   const double* scalars, Repeat repeat) {
  if (device::current()) return map_on_device({loops, dtype, through}, in, out, n, scalars, repeat);
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
  if (device::current()) return map_on_device({loops, dtype}, in, out, n, scalars, repeat);
  if (const SpanFn fn = loops.fn[static_cast<int>(repeat)][static_cast<int>(dtype)]) return fn(in, out, n, scalars);
  apply_through(loops, dtype, dtype_through(dtype), in, out, n, scalars, repeat);
}

void apply_parallel(const SpanLoops& loops, DType dtype, const void* const* in, void* out, int64_t n,
                    const double* scalars, Repeat repeat) {
  if (device::current() || is_work_for_one_core(n, loops.cost_ns))
    return apply(loops, dtype, in, out, n, scalars, repeat);
  const int64_t size = dtype_size(dtype);
  parallel_for(n, loops.cost_ns, [&](int64_t begin, int64_t end) {
    const void* part[kMaxInputs];
    for (int k = 0; k < loops.arity; ++k) {
      part[k] = is_repeated(repeat, k) ? in[k] : static_cast<const char*>(in[k]) + begin * size;
    }
    apply(loops, dtype, part, static_cast<char*>(out) + begin * size, end - begin, scalars, repeat);
  });
}

void apply_number(const SpanLoops& loops, DType dtype, double number, Repeat side, const void* data, void* out,
                  int64_t n, bool parallel) {
  if (device::current()) {
    // Rounded to dtype first, as on the CPU, where a dtype without a loop is converted from it.
    double rounded;
    alignas(8) char element[8];
    store_scalar(dtype, number, element);
    convert_fn(dtype, DType::kFloat64)(element, &rounded, 1);
    return number_on_device({loops, dtype}, rounded, side, data, out, n);
  }
  alignas(8) char element[8];
  store_scalar(dtype, number, element);
  const void* in[2] = {data, data};
  in[side == Repeat::kFirst ? 0 : 1] = element;
  (parallel ? apply_parallel : apply)(loops, dtype, in, out, n, nullptr, side);
}

void store_scalar(DType dtype, double value, void* out) { convert_fn(DType::kFloat64, dtype)(&value, out, 1); }

}  // namespace hybridnet::kernels
