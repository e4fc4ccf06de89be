#include "kernels/product/tile_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

std::vector<bfloat16> random_halves(int64_t count, uint32_t seed) {
  const std::vector<float> values = random_values<float>(count, seed);
  std::vector<bfloat16> halves;
  for (const float value : values) halves.emplace_back(value);
  return halves;
}

class Relu final : public TileProductEnds {
 public:
  void end(float* sums, int64_t count) const override {
    for (int64_t i = 0; i < count; ++i) sums[i] = sums[i] < 0 ? 0 : sums[i];
  }
};

struct Operands {
  int64_t rows, depth, columns;
  std::vector<bfloat16> a, weights, bias, addend;
  std::vector<char> packed, workspace;
  Operands(int64_t m, int64_t k, int64_t n)
      : rows(m),
        depth(k),
        columns(n),
        a(random_halves(m * k, 1)),
        weights(random_halves(n * k, 2)),
        bias(random_halves(n, 3)),
        addend(random_halves(m * n, 4)),
        packed(static_cast<size_t>(packed_tile_weights(k, n))),
        workspace(static_cast<size_t>(tile_product_workspace(k, m))) {
    pack_tile_weights(weights.data(), k, n, packed.data());
  }
  TileProduct product(bfloat16* out) {
    return {.packed = packed.data(),
            .depth = depth,
            .columns = columns,
            .rows = a.data(),
            .count = rows,
            .out = out,
            .workspace = workspace.data()};
  }
  double sum(int64_t i, int64_t j) const {
    double total = 0;
    for (int64_t k = 0; k < depth; ++k)
      total += static_cast<double>(a[static_cast<size_t>(i * depth + k)]) *
               static_cast<double>(weights[static_cast<size_t>(j * depth + k)]);
    return total;
  }
};

// Half a unit in the last place of bfloat16, and the rounding of float32 sums.
double tolerance(double exact) { return std::abs(exact) / 256 + 1e-4; }

TEST(TileProduct, AgreesWithSumsInDouble) {
  if (!has_tile_products()) GTEST_SKIP() << "needs AMX";
  const Relu relu;
  for (const int64_t rows : {1, 16, 17, 31, 32, 48, 130})
    for (const int64_t depth : {1, 31, 32, 33, 96})
      for (const int64_t columns : {1, 16, 17, 32, 33, 70}) {
        Operands o(rows, depth, columns);
        std::vector<bfloat16> plain(o.addend), ended(o.addend);
        tile_product(o.product(plain.data()));
        TileProduct with_ends = o.product(ended.data());
        with_ends.bias = o.bias.data();
        with_ends.addend = ended.data();
        with_ends.ends = &relu;
        tile_product(with_ends);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            const auto at = static_cast<size_t>(i * columns + j);
            const double sum = o.sum(i, j);
            const double end = std::max(0.0, sum + o.bias[static_cast<size_t>(j)] + o.addend[at]);
            ASSERT_NEAR(plain[at], sum, tolerance(sum)) << rows << " " << depth << " " << columns << " " << at;
            ASSERT_NEAR(ended[at], end, tolerance(end)) << rows << " " << depth << " " << columns << " " << at;
          }
      }
}

// Depths of which a task holds few rows.
TEST(TileProduct, DividesRowsIntoTasks) {
  if (!has_tile_products()) GTEST_SKIP() << "needs AMX";
  Operands o(70, 16384, 40);
  std::vector<bfloat16> out(o.addend);
  tile_product(o.product(out.data()));
  for (int64_t i = 0; i < o.rows; ++i)
    for (int64_t j = 0; j < o.columns; ++j)
      ASSERT_NEAR(out[static_cast<size_t>(i * o.columns + j)], o.sum(i, j), tolerance(o.sum(i, j)) + 1e-2);
}

TEST(TileProduct, KeepsSpecialValuesInTheirRowsAndColumns) {
  if (!has_tile_products()) GTEST_SKIP() << "needs AMX";
  Operands o(17, 33, 18);
  o.a[2 * 33] = bfloat16(std::numeric_limits<float>::infinity());
  o.weights[5 * 33 + 32] = bfloat16(std::numeric_limits<float>::quiet_NaN());
  pack_tile_weights(o.weights.data(), o.depth, o.columns, o.packed.data());
  std::vector<bfloat16> out(o.addend);
  tile_product(o.product(out.data()));
  for (int64_t i = 0; i < o.rows; ++i)
    for (int64_t j = 0; j < o.columns; ++j) {
      const float value = out[static_cast<size_t>(i * o.columns + j)];
      ASSERT_EQ(std::isnan(value), j == 5) << i << " " << j;
      ASSERT_EQ(std::isfinite(value), i != 2 && j != 5) << i << " " << j;
    }
}

TEST(TileProduct, RestoresPackedWeights) {
  for (const int64_t depth : {1, 31, 32, 65})
    for (const int64_t columns : {1, 16, 33, 64}) {
      const Operands o(1, depth, columns);
      std::vector<bfloat16> restored(o.weights.size());
      for (const Unpacking& part : tile_unpacking(depth, columns))
        part.write(o.packed.data(), reinterpret_cast<char*>(restored.data()) + part.offset);
      for (size_t i = 0; i < restored.size(); ++i) ASSERT_EQ(restored[i].bits, o.weights[i].bits) << i;
    }
}

}  // namespace
}  // namespace hybridnet::kernels
