// _shuffle: the slices of an array in random order.
#include <cstring>
#include <numeric>

#include "hybridnet/declare.h"
#include "kernels/index/gather.h"
#include "kernels/random/rng.h"
#include "ops/device_table.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

// The Fisher-Yates shuffle: every order is equally likely.
Temporary<int64_t> random_order(int64_t n, RngKey key) {
  Temporary<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = n - 1; i > 0; --i) {
    kernels::ElementBits bits(key, static_cast<uint64_t>(i));
    const uint64_t word = static_cast<uint64_t>(bits.next()) << 32 | bits.next();
    const auto j = static_cast<int64_t>(static_cast<unsigned __int128>(word) * static_cast<uint64_t>(i + 1) >> 64);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  }
  return order;
}

void shuffle(const KernelArgs& a) {
  const TensorRef& in = a.in[0];
  if (in.size() == 0) return;
  const int64_t rows = in.shape->ndim() == 0 ? 1 : (*in.shape)[0];
  const int64_t row_bytes = in.size() / rows * dtype_size(in.dtype);
  const Temporary<int64_t> order = random_order(rows, a.rng);
  if (device::current()) {  // the order depends on the key only
    const DeviceTable<int64_t> ids(order);
    return kernels::gather_rows(in.data, {1, rows, in.size() / rows}, ids.data(), rows, a.out[0].data,
                                dtype_size(in.dtype));
  }
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(a.out[0].as<char>() + i * row_bytes, in.as<char>() + order[static_cast<size_t>(i)] * row_bytes,
                static_cast<size_t>(row_bytes));
  }
}

}  // namespace

void register_shuffle(OpRegistry& ops) {
  ops.declare("_shuffle")
      .alias("shuffle")
      .alias("_npi_shuffle")
      .doc("The slices of data along its first axis in random order, every order equally likely.")
      .input("data", "array of any shape")
      .output("output", "shape and dtype of data")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_shapes();
        c.unify_dtypes();
      })
      .cpu([](const NoParams&, const KernelArgs& a) { shuffle(a); })
      .any_device()
      .random()
      .cost([](const NoParams&, auto in, auto) {
        const int64_t rows = in[0].shape.ndim() == 0 ? 1 : in[0].shape[0];
        return rows * 30 + in[0].bytes() / 8;
      })
      .gradient(kNotDifferentiable)
      .sample({{5, 2}});
}

}  // namespace hybridnet::ops
