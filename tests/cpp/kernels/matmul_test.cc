// Products through oneDNN, with weights packed in each way, compared with plain sums; and the choice for dense layers.
#include "kernels/dnnl/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hybridnet/runtime.h"
#include "kernels/dnnl/dense_choice.h"
#include "kernels/product/packed_product.h"
#include "kernels/random_values.h"

namespace hybridnet::onednn {
namespace {

using kernels::random_values;

struct Product {
  int64_t m, n, k;
  std::vector<float> a = random_values(m * k, 1), b = random_values(n * k, 2), bias = random_values(n, 3),
                     addend = random_values(m * n, 4);

  std::vector<double> expected(const Matmul::Options& o) const {
    std::vector<double> out;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = o.bias ? bias[static_cast<size_t>(j)] : 0.0;
        for (int64_t x = 0; x < k; ++x)
          sum += static_cast<double>(a[static_cast<size_t>(i * k + x)]) * b[static_cast<size_t>(j * k + x)];
        if (o.add) sum += addend[static_cast<size_t>(i * n + j)];
        out.push_back(o.activation.kind == ActivationKind::kRelu ? std::max(sum, 0.0) : sum);
      }
    }
    return out;
  }

  std::vector<float> run(Matmul& matmul, const Matmul::Options& o, DerivedData* derived) {
    const OwnedBlock workspace(matmul.workspace_bytes());
    std::vector<float> out(static_cast<size_t>(m * n), NAN);
    matmul.run(a.data(), {b.data(), nullptr, DType::kFloat32, Format::kPlain, derived}, o.bias ? bias.data() : nullptr,
               out.data(), workspace.data(), o.add ? addend.data() : nullptr);
    return out;
  }
};

class PackedMatmulTest : public ::testing::TestWithParam<bool> {};

TEST_P(PackedMatmulTest, EqualsThePlainSum) {
  Runtime::get();
  for (Product product : {Product{2, 64, 100}, Product{17, 33, 65}, Product{1, 16, 16}}) {
    for (const bool whole_end : {false, true}) {
      Matmul::Options o{.m = product.m, .n = product.n, .k = product.k, .transpose_b = true, .packs = GetParam()};
      o.bias = o.add = whole_end;
      if (whole_end) o.activation.kind = ActivationKind::kRelu;
      DerivedData derived;
      Matmul matmul(o);
      const std::vector<double> expected = product.expected(o);
      const std::vector<float> first = product.run(matmul, o, &derived), again = product.run(matmul, o, &derived),
                               fresh = product.run(matmul, o, nullptr);
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(first[i], expected[i], 1e-4);
      EXPECT_EQ(first, again);
      EXPECT_EQ(first, fresh);  // packing for one call changes no bit
    }
  }
}

TEST_P(PackedMatmulTest, SeesWrittenWeights) {
  Runtime::get();
  Product product{4, 64, 64};
  const Matmul::Options o{.m = 4, .n = 64, .k = 64, .transpose_b = true, .packs = GetParam()};
  DerivedData derived;
  Matmul matmul(o);
  product.run(matmul, o, &derived);
  for (float& v : product.b) v += 1;
  derived.drop();
  const std::vector<double> expected = product.expected(o);
  const std::vector<float> found = product.run(matmul, o, &derived);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Packings, PackedMatmulTest, ::testing::Bool());

// The same weights read as (n, k) and as (k, n) are two copies.
TEST(PackedMatmul, KeepsTransposedReadingsApart) {
  Runtime::get();
  Product product{3, 32, 32};
  DerivedData derived;
  const Matmul::Options transposed{.m = 3, .n = 32, .k = 32, .transpose_b = true, .packs = true};
  Matmul::Options plain = transposed;
  plain.transpose_b = false;
  Matmul first(transposed), second(plain);
  const std::vector<float> a = product.run(first, transposed, &derived), b = product.run(second, plain, &derived);
  EXPECT_NE(a, b);
  EXPECT_EQ(b, product.run(second, plain, nullptr));
}

DenseShape dense(int64_t rows, int64_t features, int64_t hidden, bool frozen) {
  return {.rows = rows, .features = features, .hidden = hidden, .activation = false, .frozen = frozen};
}

TEST(ChooseDense, PacksFrozenWeightsOnly) {
  for (const int64_t rows : {1, 2, 16, 128}) {
    const DenseAlgorithm choice = choose_dense(dense(rows, 1024, 1024, false));
    EXPECT_TRUE(choice == DenseAlgorithm::kProduct || choice == DenseAlgorithm::kFusedProduct) << rows;
  }
}

TEST(ChooseDense, PacksWhereThatPaysWithTheseInstructionSets) {
  const bool avx512 = has_bfloat16();
  const bool packs = kernels::packed_products_pay();
  const DenseAlgorithm narrow = avx512 ? DenseAlgorithm::kPackedMatmul : DenseAlgorithm::kProduct,
                       wide = packs ? DenseAlgorithm::kPackedProduct : narrow;
  EXPECT_EQ(choose_dense(dense(128, 768, 3072, true)), wide);
  EXPECT_EQ(choose_dense(dense(8, 256, 256, true)), wide);
  EXPECT_EQ(choose_dense(dense(1, 784, 512, true)), packs ? DenseAlgorithm::kPackedProduct : DenseAlgorithm::kProduct);
  EXPECT_EQ(choose_dense(dense(128, 768, 10, true)), narrow);                     // few columns
  EXPECT_EQ(choose_dense(dense(1, 2048, 1000, true)), DenseAlgorithm::kProduct);  // weights that exceed the caches
}

TEST(ChooseDense, LeavesSmallProductsPlain) {
  EXPECT_EQ(choose_dense(dense(4, 8, 8, true)), DenseAlgorithm::kProduct);
  EXPECT_EQ(choose_dense(dense(0, 1024, 1024, true)), DenseAlgorithm::kProduct);
}

}  // namespace
}  // namespace hybridnet::onednn
