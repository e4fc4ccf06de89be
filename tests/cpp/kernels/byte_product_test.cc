#include "kernels/product/byte_product.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "hybridnet/threads.h"

namespace hybridnet::kernels {
namespace {

template <typename T>
std::vector<T> random_bytes(int64_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> uniform(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  std::vector<T> values(static_cast<size_t>(size));
  for (T& v : values) v = static_cast<T>(uniform(generator));
  return values;
}

class StoredSums final : public ByteProductEnds {
 public:
  StoredSums(int64_t rows, int64_t columns) : columns_(columns), sums_(static_cast<size_t>(rows * columns)) {}
  void end(const GemmTile& tile, const int32_t* sums, int64_t stride) const override {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < tile.columns; ++j)
        sums_[static_cast<size_t>((tile.row + r) * columns_ + tile.column + j)] = sums[r * stride + j];
  }
  const std::vector<int32_t>& values() const { return sums_; }

 private:
  int64_t columns_;
  mutable std::vector<int32_t> sums_;
};

std::vector<char> packed(const std::vector<int8_t>& weights, int64_t depth, int64_t columns) {
  std::vector<char> bytes(static_cast<size_t>(packed_byte_weights(depth, columns)), 'x');
  pack_byte_weights(weights.data(), depth, columns, bytes.data());
  return bytes;
}

template <typename X>
std::vector<int32_t> product(const std::vector<X>& x, const std::vector<char>& weights, int64_t rows, int64_t depth,
                             int64_t columns) {
  std::vector<char> workspace(static_cast<size_t>(byte_product_workspace(depth, rows)));
  const StoredSums ends(rows, columns);
  byte_product({.packed = weights.data(),
                .depth = depth,
                .columns = columns,
                .rows = x.data(),
                .is_signed = std::is_signed_v<X>,
                .count = rows,
                .workspace = workspace.data(),
                .ends = &ends});
  return ends.values();
}

template <typename X>
void compare_with_loops(int64_t rows, int64_t depth, int64_t columns, const std::vector<X>& x,
                        const std::vector<int8_t>& w) {
  const std::vector<int32_t> sums = product(x, packed(w, depth, columns), rows, depth, columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t expected = 0;
      for (int64_t k = 0; k < depth; ++k)
        expected += int64_t{x[static_cast<size_t>(r * depth + k)]} * w[static_cast<size_t>(j * depth + k)];
      ASSERT_EQ(sums[static_cast<size_t>(r * columns + j)], expected)
          << rows << " x " << depth << " x " << columns << " at " << r << ", " << j;
    }
}

// Sizes around the tiles' rows, the blocks' columns and the parts of the depth.
TEST(ByteProduct, IsExactForAllSizes) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 31, 33, 48, 49, 97, 129})
    for (const int64_t depth : {1, 3, 4, 5, 63, 64, 127, 128, 129, 260})
      for (const int64_t columns : {1, 15, 16, 17, 63, 64, 65, 100, 130}) {
        const auto w = random_bytes<int8_t>(depth * columns, 1);
        compare_with_loops(rows, depth, columns, random_bytes<int8_t>(rows * depth, 2), w);
        compare_with_loops(rows, depth, columns, random_bytes<uint8_t>(rows * depth, 3), w);
      }
}

TEST(ByteProduct, IsExactForTheLargestBytes) {
  constexpr int64_t kDepth = 3072, kColumns = 33;
  for (const int8_t weight : {int8_t{-128}, int8_t{127}})
    for (const int64_t rows : {1, 2, 8, 50}) {
      const std::vector<int8_t> w(kDepth * kColumns, weight);
      for (const int8_t x : {int8_t{-128}, int8_t{127}})
        compare_with_loops(rows, kDepth, kColumns, std::vector<int8_t>(static_cast<size_t>(rows * kDepth), x), w);
      compare_with_loops(rows, kDepth, kColumns, std::vector<uint8_t>(static_cast<size_t>(rows * kDepth), 255), w);
    }
}

TEST(ByteProduct, SumsModulo32Bits) {
  constexpr int64_t kDepth = 200'000;  // the sum of the weights alone, times 128, exceeds 32 bits
  const std::vector<int8_t> w(kDepth, -128), x(kDepth, -128);
  const int64_t sum = kDepth * 128 * 128;
  EXPECT_EQ(product(x, packed(w, kDepth, 1), 1, kDepth, 1)[0], static_cast<int32_t>(static_cast<uint32_t>(sum)));
}

TEST(ByteProduct, PackedWeightsRestoreThePlainOnes) {
  for (const int64_t depth : {1, 4, 6, 130})
    for (const int64_t columns : {1, 16, 65, 200}) {
      const auto w = random_bytes<int8_t>(depth * columns, 4);
      std::vector<int8_t> again(w.size());
      unpack_byte_weights(packed(w, depth, columns).data(), depth, columns, again.data());
      ASSERT_EQ(again, w) << depth << " x " << columns;
    }
}

TEST(ByteProduct, DoesNotDependOnTheNumberOfCores) {
  constexpr int64_t kRows = 100, kDepth = 300, kColumns = 500;
  const auto w = packed(random_bytes<int8_t>(kDepth * kColumns, 5), kDepth, kColumns);
  const auto x = random_bytes<int8_t>(kRows * kDepth, 6);
  const CoreScope one(1);
  const auto alone = product(x, w, kRows, kDepth, kColumns);
  const CoreScope four(4);
  EXPECT_EQ(product(x, w, kRows, kDepth, kColumns), alone);
}

}  // namespace
}  // namespace hybridnet::kernels
