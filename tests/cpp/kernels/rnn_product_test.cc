#include "kernels/rnn_product.h"

#include <gtest/gtest.h>

#include <vector>

#include "hybridnet/threads.h"
#include "kernels/gemm.h"
#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

template <typename T>
struct Operands {
  int64_t rows, depth, columns;
  std::vector<T> a, weights, packed, addend;
  Operands(int64_t m, int64_t k, int64_t n)
      : rows(m),
        depth(k),
        columns(n),
        a(random_values<T>(m * k, 1)),
        weights(random_values<T>(k * n, 2)),
        packed(weights.size()),
        addend(random_values<T>(m * n, 3)) {
    pack_columns(k, n, weights.data(), packed.data());
  }
  PackedProduct<T> product(const T* added, T* out) const {
    return {packed.data(), depth, columns, a.data(), rows, added, out};
  }
};

// Sizes around the blocks' columns and the tiles' rows.
template <typename T>
void compare_with_gemm(double tolerance) {
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 12, 13})
    for (const int64_t depth : {1, 5, 40})
      for (const int64_t columns : {1, 7, 8, 31, 32, 45, 100}) {
        const Operands<T> o(rows, depth, columns);
        std::vector<T> plain(o.addend), sum(o.addend), alone(o.addend.size());
        gemm(GemmShape::dense(false, false, rows, columns, depth), T(1), o.a.data(), o.weights.data(), T(1),
             plain.data());
        packed_product(o.product(sum.data(), sum.data()));
        packed_product(o.product(nullptr, alone.data()));
        for (size_t i = 0; i < plain.size(); ++i) {
          ASSERT_NEAR(sum[i], plain[i], tolerance) << rows << " " << depth << " " << columns << " " << i;
          ASSERT_NEAR(alone[i], plain[i] - o.addend[i], tolerance) << rows << " " << depth << " " << columns;
        }
      }
}

TEST(RnnProduct, AgreesWithGemm) {
  compare_with_gemm<float>(2e-5);
  compare_with_gemm<double>(1e-13);
}

TEST(RnnProduct, SameBitsForAnyNumberOfCores) {
  const Operands<float> o(33, 300, 200);
  std::vector<float> out[3];
  for (const int cores : {1, 2, 3}) {
    const CoreScope scope(cores);
    std::vector<float>& to = out[cores - 1];
    to.resize(o.addend.size());
    packed_product(o.product(o.addend.data(), to.data()));
  }
  EXPECT_EQ(out[0], out[1]);
  EXPECT_EQ(out[0], out[2]);
}

TEST(RnnProduct, NoRowsOrColumnsAreNoWork) {
  packed_product(PackedProduct<float>{});
  pack_columns(4, 0, static_cast<const float*>(nullptr), nullptr);
}

}  // namespace
}  // namespace hybridnet::kernels
