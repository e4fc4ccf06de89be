// Pooling of quantized data, which keeps the range. Averages are rounded to the nearest integer, halves to even.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/pool_arguments.h"
#include "kernels/elementwise/integer_rows.h"
#include "ops/device_launch.h"
#include "ops/nn/pooling_params.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops {
namespace {

using kernels::PoolGeometry;

int32_t rounded_quotient(int32_t sum, int32_t count) {
  const int32_t size = std::abs(sum), floor = size / count, twice_rest = 2 * (size % count);
  const int32_t nearest = floor + (twice_rest > count || (twice_rest == count && floor % 2 != 0) ? 1 : 0);
  return sum < 0 ? -nearest : nearest;
}

// The divisor of an average: windows that include the padding have their full size, even if they extend beyond it
// (convention full).
int64_t count_of(const PoolGeometry& g, const std::array<int64_t, 3>& p) {
  if (g.count_pad) return std::max<int64_t>(g.kernel_size(), 1);
  int64_t count = 1;
  for (int i = 0; i < 3; ++i)
    count *= std::max<int64_t>(g.last(i, p[static_cast<size_t>(i)]) - g.first(i, p[static_cast<size_t>(i)]), 0);
  return std::max<int64_t>(count, 1);
}

// Calls f(pointer to the `width` channels of a position) for the positions of x in the window of output p.
template <typename T, typename F>
void for_window(const PoolGeometry& g, const T* x, const std::array<int64_t, 3>& p, int64_t width, F&& f) {
  for (int64_t i = g.first(0, p[0]); i < g.last(0, p[0]); ++i) {
    for (int64_t j = g.first(1, p[1]); j < g.last(1, p[1]); ++j) {
      const T* row = x + (i * g.in[1] + j) * g.in[2] * width;
      for (int64_t k = g.first(2, p[2]); k < g.last(2, p[2]); ++k) f(row + k * width);
    }
  }
}

// Pools one window. Channels-last memory: `width` channels at a time, whose sums are on the stack, 256 per pass. Plain
// memory: one channel.
template <typename T>
void pool_window(const PoolGeometry& g, const T* x, const std::array<int64_t, 3>& p, int64_t width, T* y) {
  if (g.type == PoolType::kMax) {
    std::fill_n(y, width, std::numeric_limits<T>::min());
    return for_window(g, x, p, width, [y, width](const T* from) { kernels::take_larger_bytes(from, y, width); });
  }
  const auto count = static_cast<int32_t>(count_of(g, p));
  constexpr int64_t kChannels = 256;
  int32_t sums[kChannels];
  for (int64_t first = 0; first < width; first += kChannels) {
    const int64_t n = std::min(kChannels, width - first);
    std::fill_n(sums, n, 0);
    for_window(g, x + first, p, width, [&sums, n](const T* from) { kernels::add_bytes(from, sums, n); });
    for (int64_t c = 0; c < n; ++c) y[first + c] = static_cast<T>(rounded_quotient(sums[c], count));
  }
}

template <typename T>
void pool(const PoolGeometry& g, const T* x, T* y) {
  const int64_t width = g.channels_last ? g.c : 1, planes = g.channels_last ? g.n : g.n * g.c;
  const double window_ns = 0.1 * static_cast<double>(width * g.kernel_size());
  parallel_for(planes * g.out_size(), window_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / g.out_size(), at = i % g.out_size();
      const std::array<int64_t, 3> p{at / (g.out[1] * g.out[2]), at / g.out[2] % g.out[1], at % g.out[2]};
      pool_window(g, x + plane * g.in_size() * width, p, width, y + i * width);
    }
  });
}

void pool_on_device(const PoolGeometry& g, const KernelArgs& a) {
  device::PoolArguments pooled{.x = a.in[0].data, .to = a.out[0].data, .n = g.n, .c = g.c, .count_pad = g.count_pad};
  for (size_t i = 0; i < 3; ++i) {
    pooled.in[i] = g.in[i];
    pooled.out[i] = g.out[i];
    pooled.kernel[i] = g.kernel[i];
    pooled.stride[i] = g.stride[i];
    pooled.pad[i] = g.pad[i];
  }
  const std::string types = std::string(g.channels_last ? "true, " : "false, ") +
                            (g.type == PoolType::kMax ? "true, " : "false, ") + on_device::element_name(a.in[0].dtype);
  on_device::launch("pooling.cuh", "PoolArguments", on_device::with_type("pool_bytes", types), a.out[0].size(), pooled);
}

class PoolKernel final : public Kernel {
 public:
  explicit PoolKernel(const PoolGeometry& g) : g_(g) {}
  void run(const KernelArgs& a) override {
    if (device::current())
      pool_on_device(g_, a);
    else if (a.in[0].dtype == DType::kUInt8)
      pool(g_, a.in[0].as<uint8_t>(), a.out[0].as<uint8_t>());
    else
      pool(g_, a.in[0].as<int8_t>(), a.out[0].as<int8_t>());
    write_range(a, range_at(a, 1));
  }

 private:
  PoolGeometry g_;
};

void infer(const PoolingParams& p, InferContext& c) {
  if (p.pool_type != PoolType::kMax && p.pool_type != PoolType::kAvg)
    throw ParamError({.input = "pool_type",
                      .expected = "max or avg",
                      .given = p.pool_type == PoolType::kSum ? "sum" : "lp",
                      .because = "the result has the range of the data"});
  c.require_dtype(0, kBytes);
  c.unify_dtypes({0}, {0});
  infer_pooling(p, c);
  infer_range_inputs(c, 1, 3);
  infer_range_outputs(c);
}

}  // namespace

void register_quantized_pooling(OpRegistry& ops) {
  constexpr DType kI = DType::kInt8, kU = DType::kUInt8;
  ops.declare<PoolingParams>("_contrib_quantized_pooling")
      .doc("Maximum or average of windows of a quantized image.")
      .input("data", "int8 or uint8 (batch, channels, spatial...)")
      .input("min_data", "(1,): value of the smallest byte")
      .input("max_data", "(1,): value of the largest byte")
      .output("output", "dtype of data; shape of the output of Pooling")
      .output("min_output", "(1,): min_data")
      .output("max_output", "(1,): max_data")
      .infer(infer)
      .link(
          [](const PoolingParams& p, const LinkContext& c) {
            return Ref<Kernel>(
                new PoolKernel(pool_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c))));
          },
          kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .image({0}, {0})
      .image_when([](const PoolingParams& p) { return !is_channels_last(p.layout); })
      .sample(
          bytes_sample({{2, 3, 6, 5}, {1}, {1}}, {kI}, {{"kernel", "(3, 2)"}, {"stride", "(2, 2)"}, {"pad", "(1, 0)"}}))
      .sample(bytes_sample(
          {{2, 3, 6, 5}, {1}, {1}}, {kU},
          {{"kernel", "(2, 2)"}, {"pool_type", "avg"}, {"pooling_convention", "full"}, {"stride", "(2, 2)"}}, 0, 200))
      .sample(
          bytes_sample({{2, 3, 6, 5}, {1}, {1}}, {kI},
                       {{"kernel", "(3, 3)"}, {"pool_type", "avg"}, {"pad", "(1, 1)"}, {"count_include_pad", "False"}}))
      .sample(bytes_sample({{1, 3, 4, 300}, {1}, {1}}, {kU},
                           {{"kernel", "(2, 2)"}, {"pool_type", "avg"}, {"layout", "NHWC"}}, 0, 200))
      .sample(bytes_sample({{2, 3, 4, 4}, {1}, {1}}, {kI}, {{"global_pool", "True"}, {"pool_type", "avg"}}));
}

}  // namespace hybridnet::ops
