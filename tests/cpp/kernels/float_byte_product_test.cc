#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "hybridnet/threads.h"
#include "kernels/product/byte_product.h"
#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

struct Operands {
  int64_t rows, depth, columns;
  std::vector<float> x, scale, bias;
  std::vector<int8_t> weights;
  std::vector<char> packed;
  Operands(int64_t m, int64_t k, int64_t n)
      : rows(m),
        depth(k),
        columns(n),
        x(random_values<float>(m * k, 1)),
        scale(random_values<float>(n, 2)),
        bias(random_values<float>(n, 3)),
        packed(static_cast<size_t>(packed_byte_weights(k, n))) {
    std::mt19937 generator(4);
    std::uniform_int_distribution<int> uniform(-128, 127);
    for (int64_t i = 0; i < k * n; ++i) weights.push_back(static_cast<int8_t>(uniform(generator)));
    pack_byte_weights(weights.data(), k, n, packed.data());
  }
  std::vector<float> product(int64_t first, int64_t count, bool with_bias = true) const {
    std::vector<float> out(static_cast<size_t>(count * columns), NAN);
    std::vector<char> workspace(static_cast<size_t>(float_byte_product_workspace(depth, count)));
    float_byte_product({.packed = packed.data(),
                        .depth = depth,
                        .columns = columns,
                        .rows = x.data() + first * depth,
                        .count = count,
                        .scale = scale.data(),
                        .bias = with_bias ? bias.data() : nullptr,
                        .out = out.data(),
                        .workspace = workspace.data()});
    return out;
  }
};

TEST(FloatByteProduct, AgreesWithLoopsForAllSizes) {
  for (const int64_t rows : {1, 2, 3, 5, 6, 7, 9, 11, 12, 49})
    for (const int64_t depth : {0, 1, 3, 4, 63, 64, 65, 200})
      for (const int64_t columns : {1, 15, 16, 33, 64, 65, 130}) {
        const Operands o(rows, depth, columns);
        const std::vector<float> with_bias = o.product(0, rows), alone = o.product(0, rows, false);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < depth; ++k)
              sum += double{o.x[static_cast<size_t>(r * depth + k)]} * o.weights[static_cast<size_t>(j * depth + k)];
            const auto at = static_cast<size_t>(r * columns + j), column = static_cast<size_t>(j);
            ASSERT_NEAR(alone[at], sum * o.scale[column], 2e-3) << rows << " " << depth << " " << columns;
            ASSERT_NEAR(with_bias[at], sum * o.scale[column] + o.bias[column], 2e-3);
          }
      }
}

TEST(FloatByteProduct, BitsDependOnNeitherOtherRowsNorCores) {
  for (const int64_t depth : {300, 301}) {
    const Operands o(60, depth, 200);
    const CoreScope one(1);
    const std::vector<float> whole = o.product(0, 60);
    const CoreScope four(4);
    EXPECT_EQ(o.product(0, 60), whole);
    for (const int64_t count : {1, 2, 3, 4, 6, 8, 13}) {
      const std::vector<float> part = o.product(5, count);
      const std::vector<float> expected(whole.begin() + 5 * 200, whole.begin() + (5 + count) * 200);
      EXPECT_EQ(part, expected) << count;
    }
  }
}

}  // namespace
}  // namespace hybridnet::kernels
