#include "kernels/product/packed_product.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hybridnet/threads.h"
#include "kernels/product/gemm.h"
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
    pack_weights(ProductWeights<T>::plain(weights.data(), k, n), packed.data());
  }
  PackedProduct<T> product(const T* added, T* out) const {
    return {packed.data(), depth, columns, a.data(), rows, out, added};
  }
};

// Sizes around the blocks' columns and the tiles' rows.
template <typename T>
void compare_with_gemm(double tolerance) {
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 12, 13})
    for (const int64_t depth : {1, 5, 40})
      for (const int64_t columns : {1, 7, 8, 15, 17, 31, 32, 45, 48, 63, 100}) {
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

TEST(PackedProduct, AgreesWithGemm) {
  compare_with_gemm<float>(2e-5);
  compare_with_gemm<double>(1e-13);
}

TEST(PackedProduct, SameBitsForAnyNumberOfCores) {
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

// Depths and rows of several passes and tasks, weights in the layout of dense layers, and all operations at the end of
// a product.
template <typename T>
void compare_ends_with_sums(int64_t rows, int64_t depth, int64_t columns, double tolerance) {
  const std::vector<T> a = random_values<T>(rows * depth, 1), weights = random_values<T>(columns * depth, 2),
                       bias = random_values<T>(columns, 3), addend = random_values<T>(rows * columns, 4);
  std::vector<T> packed(weights.size()), out(addend);
  pack_weights(ProductWeights<T>::transposed(weights.data(), depth, columns), packed.data());
  const T low = -1, high = T(1.5);
  packed_product({.packed = packed.data(),
                  .depth = depth,
                  .columns = columns,
                  .rows = a.data(),
                  .count = rows,
                  .out = out.data(),
                  .addend = out.data(),
                  .bias = bias.data(),
                  .low = low,
                  .high = high});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const size_t at = static_cast<size_t>(i * columns + j);
      double sum = static_cast<double>(bias[static_cast<size_t>(j)]) + addend[at];
      for (int64_t k = 0; k < depth; ++k)
        sum += static_cast<double>(a[static_cast<size_t>(i * depth + k)]) * weights[static_cast<size_t>(j * depth + k)];
      ASSERT_NEAR(out[at], std::clamp<double>(sum, low, high), tolerance) << rows << " " << depth << " " << columns;
    }
}

template <typename T>
void compare_ends_with_sums(double tolerance) {
  for (const int64_t rows : {1, 2, 6, 13, 33, 50, 260})
    for (const int64_t depth : {1, 33, 800, 1700})
      for (const int64_t columns : {32, 45, 150}) compare_ends_with_sums<T>(rows, depth, columns, tolerance);
}

TEST(PackedProduct, AddsBiasAndAddendWithinBounds) {
  compare_ends_with_sums<float>(1e-3);
  compare_ends_with_sums<double>(1e-11);
}

// More than 4 MB, which a few rows read in short passes.
TEST(PackedProduct, MultipliesFewRowsWithLargeWeights) {
  for (const int64_t rows : {2, 7, 13, 32}) {
    compare_ends_with_sums<float>(rows, 1507, 709, 1e-3);
    compare_ends_with_sums<double>(rows, 769, 709, 1e-11);
  }
}

// Values that end at a protected page: an access beyond them ends the process.
class BeforeGuard {
 public:
  explicit BeforeGuard(const std::vector<float>& values) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    const size_t bytes = values.size() * sizeof(float);
    room_ = (bytes + page_ - 1) / page_ * page_;
    memory_ =
        static_cast<char*>(mmap(nullptr, room_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(memory_ + room_, page_, PROT_NONE), 0);
    std::copy(values.begin(), values.end(), data_ = reinterpret_cast<float*>(memory_ + room_ - bytes));
  }
  ~BeforeGuard() { munmap(memory_, room_ + page_); }
  BeforeGuard(const BeforeGuard&) = delete;
  float* data() const { return data_; }

 private:
  const size_t page_;
  size_t room_ = 0;
  char* memory_ = nullptr;
  float* data_ = nullptr;
};

// Vectors of the last block extend beyond its columns, but not beyond the arrays.
TEST(PackedProduct, StaysWithinItsMemory) {
  for (const int64_t columns : {1, 5, 15, 17, 33, 70})
    for (const int64_t rows : {1, 7}) {
      const Operands<float> o(rows, 20, columns);
      const std::vector<float> one(static_cast<size_t>(columns), 1.0F);
      std::vector<float> expected(o.addend.size());
      PackedProduct<float> product = o.product(o.addend.data(), expected.data());
      product.bias = one.data();
      packed_product(product);
      const BeforeGuard packed(o.packed), a(o.a), addend(o.addend), bias(one), out(expected);
      std::fill_n(out.data(), expected.size(), NAN);
      product.packed = packed.data();
      product.rows = a.data();
      product.addend = addend.data();
      product.bias = bias.data();
      product.out = out.data();
      packed_product(product);
      EXPECT_EQ(std::vector<float>(out.data(), out.data() + expected.size()), expected) << columns << " " << rows;
    }
}

TEST(PackedProduct, UnpackedWeightsHaveTheBitsThatWerePacked) {
  for (const int64_t columns : {1, 15, 33, 64, 70, 200}) {
    const std::vector<float> weights = random_values<float>(37 * columns, 2);
    std::vector<float> packed(weights.size()), again(weights.size());
    pack_weights(ProductWeights<float>::transposed(weights.data(), 37, columns), packed.data());
    unpack_weights(packed.data(), ProductWeights<float>::transposed(again.data(), 37, columns));
    EXPECT_EQ(again, weights) << columns;
  }
}

TEST(PackedProduct, NanPassesBounds) {
  const float packed[1] = {1}, row[1] = {NAN};
  float out[1] = {0};
  packed_product(
      {.packed = packed, .depth = 1, .columns = 1, .rows = row, .count = 1, .out = out, .low = 0, .high = 6});
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(PackedProduct, EachElementIsEndedOnce) {
  struct Count final : GemmEnds {
    std::vector<int>& seen;
    explicit Count(std::vector<int>& s) : seen(s) {}
    void begin(const GemmTile&) const override {}
    void end(const GemmTile& t) const override {
      for (int64_t i = t.row; i < t.row + t.rows; ++i)
        for (int64_t j = t.column; j < t.column + t.columns; ++j) ++seen[static_cast<size_t>(i * 300 + j)];
    }
  };
  const Operands<float> o(500, 40, 300);
  std::vector<int> seen(500 * 300, 0);
  const Count count(seen);
  std::vector<float> out(seen.size());
  PackedProduct<float> product = o.product(nullptr, out.data());
  product.ends = &count;
  packed_product(product);
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(PackedProduct, NoRowsOrColumnsAreNoWork) {
  packed_product(PackedProduct<float>{});
  pack_weights(ProductWeights<float>::plain(nullptr, 4, 0), nullptr);
}

}  // namespace
}  // namespace hybridnet::kernels
