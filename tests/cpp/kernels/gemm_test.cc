// Matrix products: each algorithm of choose_gemm compared with sums in double, and the same bits for one and two cores.
#include "kernels/product/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "hybridnet/runtime.h"
#include "kernels/isa.h"
#include "kernels/product/gemm_choice.h"
#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

// The product C of `s` for random operands; elements between the rows of C keep the value kOutside.
constexpr float kOutside = 7;
struct Product {
  GemmShape s;
  float alpha = 1, beta = 0;
  std::vector<float> a = random_values((s.transpose_a ? s.k : s.m) * s.lda, 1);
  std::vector<float> b = random_values((s.transpose_b ? s.n : s.k) * s.ldb, 2);
  std::vector<float> before = random_values(s.m * s.n, 3);

  std::vector<float> run(int cores) const {
    std::vector<float> c(static_cast<size_t>(s.m * s.ldc), kOutside);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j)
        c[static_cast<size_t>(i * s.ldc + j)] = beta == 0 ? NAN : before[static_cast<size_t>(i * s.n + j)];
    const CoreScope scope(cores);
    gemm(s, alpha, a.data(), b.data(), beta, c.data());
    return c;
  }

  double expected(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t x = 0; x < s.k; ++x) {
      sum += static_cast<double>(a[static_cast<size_t>(s.transpose_a ? x * s.lda + i : i * s.lda + x)]) *
             b[static_cast<size_t>(s.transpose_b ? j * s.ldb + x : x * s.ldb + j)];
    }
    return alpha * sum + (beta == 0 ? 0.0 : beta * static_cast<double>(before[static_cast<size_t>(i * s.n + j)]));
  }

  void check() const {
    SCOPED_TRACE(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
                 (s.transpose_a ? " T" : " N") + (s.transpose_b ? "T" : "N"));
    const std::vector<float> c = run(2);
    EXPECT_EQ(c, run(1));
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.ldc; ++j) {
        const float given = c[static_cast<size_t>(i * s.ldc + j)];
        if (j >= s.n) {
          ASSERT_EQ(given, kOutside) << i << ", " << j;
        } else {
          ASSERT_NEAR(given, expected(i, j), 1e-6 * static_cast<double>(s.k + 8)) << i << ", " << j;
        }
      }
    }
  }
};

// Sizes for which AVX2 uses each algorithm, sizes with a remainder in every loop, and one that is split into many
// tiles.
TEST(GemmTest, EqualsSumsInDoubleAndGivesEqualBitsForOneAndTwoCores) {
  Runtime::get();
  const int64_t sizes[][3] = {{1, 300, 200},  {3, 77, 129},    {7, 1000, 131}, {9, 70, 33},    {33, 16, 135},
                              {128, 10, 512}, {40, 512, 300},  {64, 512, 64},  {256, 256, 40}, {512, 90, 64},
                              {65, 127, 129}, {130, 784, 150}, {24, 1024, 90}, {2, 5, 1000},   {20, 1, 700},
                              {4, 4, 4},      {13, 31, 17},    {32, 32, 32},   {7, 23, 16}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) Product{GemmShape::dense(transpose_a, transpose_b, m, n, k)}.check();
  }
}

TEST(GemmTest, ScalesAddsAndObeysRowLengths) {
  Runtime::get();
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 200, 150}, {40, 100, 64}, {90, 130, 140}, {9, 21, 16}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        GemmShape s = GemmShape::dense(transpose_a, transpose_b, m, n, k);
        s.lda += 3;
        s.ldb = 512;
        s.ldc += 5;
        Product{s, 0.5F, 0}.check();
        Product{s, -2, 1}.check();
        Product{s, 1, 0.25F}.check();
      }
    }
  }
}

// Adds the previous values of C and the column number, then negates.
class AddAndNegate final : public GemmEnds {
 public:
  AddAndNegate(float* c, int64_t ldc) : c_(c), ldc_(ldc) {}
  void begin(const GemmTile& tile) const override {
    for_each(tile, [](float& value, int64_t column) { value += static_cast<float>(column); });
  }
  void end(const GemmTile& tile) const override {
    for_each(tile, [](float& value, int64_t) { value = -value; });
  }

 private:
  template <typename F>
  void for_each(const GemmTile& tile, const F& f) const {
    for (int64_t i = tile.row; i < tile.row + tile.rows; ++i)
      for (int64_t j = tile.column; j < tile.column + tile.columns; ++j) f(c_[i * ldc_ + j], j);
  }
  float* c_;
  int64_t ldc_;
};

TEST(GemmTest, BeginsAndEndsEachElementOnce) {
  Runtime::get();
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{3, 4, 5}, {2, 6, 1}, {3, 3, 0}, {5, 200, 150}, {40, 512, 64}, {130, 300, 140}}) {
    for (const bool transpose_b : {false, true}) {
      const Product product{GemmShape::dense(false, transpose_b, m, n, k), 1, 1};
      std::vector<float> c = product.before;
      const AddAndNegate ends(c.data(), n);
      gemm(product.s, 1, product.a.data(), product.b.data(), 1, c.data(), &ends);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], -(product.expected(i, j) + static_cast<double>(j)), 2e-4)
              << m << " x " << n << " x " << k << ": " << i << ", " << j;
        }
      }
    }
  }
}

TEST(GemmTest, TakesEachAlgorithmWhereItWasMeasuredToWin) {
  const Isa isa = isa_in_force().level;
  const auto choice = [](bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
    return choose_gemm(GemmShape::dense(transpose_a, transpose_b, m, n, k));
  };
  const GemmAlgorithm plain = isa >= Isa::kAvx512 ? GemmAlgorithm::kOneDnnThreads : GemmAlgorithm::kOneDnn;
  EXPECT_EQ(choice(false, false, 128, 784, 512), plain);
  EXPECT_EQ(choice(false, true, 128, 512, 784), plain);
  const bool measured = isa == Isa::kAvx2;
  EXPECT_EQ(choice(true, false, 512, 512, 128), measured ? GemmAlgorithm::kOpenBlas : plain);
  EXPECT_EQ(choice(false, false, 64, 1024, 1024), measured ? GemmAlgorithm::kOpenBlas : plain);
  const bool from_avx2 = isa >= Isa::kAvx2;
  EXPECT_EQ(choice(false, false, 16, 16, 16), from_avx2 ? GemmAlgorithm::kDirect : plain);
  EXPECT_EQ(choice(false, true, 16, 16, 16), from_avx2 ? GemmAlgorithm::kRowDots : plain);
  EXPECT_EQ(choice(false, true, 32, 32, 32), measured ? GemmAlgorithm::kRowDots : plain);
  EXPECT_EQ(choice(false, true, 4, 1024, 1024), from_avx2 ? GemmAlgorithm::kRowDots : plain);
  EXPECT_EQ(choice(false, true, 128, 10, 512), measured ? GemmAlgorithm::kRowDots : plain);
}

TEST(GemmTest, LargeProductsAreCutAndSmallOnesStayWhole) {
  for (const int64_t size : {8, 60, 128, 500, 1024, 3000}) {
    for (const bool packs : {false, true}) {
      const GemmTileSize tile = gemm_tile_size(GemmShape::dense(false, false, size, 2 * size, size), packs);
      EXPECT_EQ(tile.rows * tile.columns == 2 * size * size, size <= 60) << size;
      EXPECT_GE(tile.columns, std::min<int64_t>(2 * size, 64));
    }
  }
}

}  // namespace
}  // namespace hybridnet::kernels
