// The algorithms for a dense layer with frozen weights compared with the plain product with fused bias and activation,
// and the products of its gradients compared with oneDNN's matmul.
#include "kernels/comparison.h"
#include "kernels/dnnl/dense_choice.h"
#include "kernels/dnnl/matmul.h"
#include "kernels/product/gemm.h"
#include "kernels/product/packed_product.h"

namespace hybridnet::benchmarks {
namespace {

using onednn::DenseAlgorithm;
using onednn::Matmul;

void add(Comparisons& all, int64_t rows, int64_t hidden, int64_t features) {
  const std::string work =
      std::to_string(rows) + " rows, " + std::to_string(features) + " to " + std::to_string(hidden);
  const Floats a(rows * features), b(hidden * features), bias(hidden), out(rows * hidden), plain(rows * hidden);
  const auto derived = std::make_shared<DerivedData>();
  const auto matmul = [=](bool packs, const Floats& to) -> std::function<void()> {
    const auto m = std::make_shared<Matmul>(
        Matmul::Options{.m = rows, .n = hidden, .k = features, .transpose_b = true, .bias = true, .packs = packs});
    const Buffer<char> space(m->workspace_bytes());
    return [=] {
      m->run(a.get(), {b.get(), nullptr, DType::kFloat32, Format::kPlain, derived.get()}, bias.get(), to.get(),
             space.get());
    };
  };
  const auto product = [=] {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(bias.get(), hidden, out.get() + i * hidden);
    kernels::gemm(kernels::GemmShape::dense(false, true, rows, hidden, features), 1.0F, a.get(), b.get(), 1.0F,
                  out.get());
  };
  const Floats packed(hidden * features);
  kernels::pack_weights(kernels::ProductWeights<float>::transposed(b.get(), features, hidden), packed.get());
  const auto columns = [=] {
    kernels::packed_product({.packed = packed.get(),
                             .depth = features,
                             .columns = hidden,
                             .rows = a.get(),
                             .count = rows,
                             .out = out.get(),
                             .bias = bias.get()});
  };
  const std::function<void()> unpacked = matmul(false, plain);
  const auto chosen = [&]() -> std::function<void()> {
    switch (onednn::choose_dense({rows, features, hidden, false, true})) {
      case DenseAlgorithm::kProduct:
        return product;
      case DenseAlgorithm::kFusedProduct:
        return matmul(false, out);
      case DenseAlgorithm::kPackedMatmul:
        return matmul(true, out);
      case DenseAlgorithm::kPackedProduct:
        return columns;
    }
    return {};
  };
  const auto off = [=] { return difference(out, plain); };
  all.push_back({"dense layer as chosen", work, chosen(), unpacked, off});
  all.push_back({"dense layer, packed matmul", work, matmul(true, out), unpacked, off});
  all.push_back({"dense layer, packed product", work, columns, unpacked, off});
}

// Adds C = op(A) B as kernels::gemm computes it.
void add_product(Comparisons& all, const std::string& kernel, bool transpose_a, int64_t m, int64_t n, int64_t k) {
  const Floats a(m * k), b(k * n), out(m * n), other(m * n);
  const auto matmul = std::make_shared<Matmul>(Matmul::Options{.m = m, .n = n, .k = k, .transpose_a = transpose_a});
  const Buffer<char> space(matmul->workspace_bytes());
  const auto library = [=] {
    matmul->run(a.get(), {b.get(), nullptr, DType::kFloat32}, nullptr, other.get(), space.get());
  };
  const auto ours = [=] {
    kernels::gemm(kernels::GemmShape::dense(transpose_a, false, m, n, k), 1.0F, a.get(), b.get(), 0.0F, out.get());
  };
  const std::string work = std::to_string(m) + " x " + std::to_string(n) + ", sums of " + std::to_string(k);
  all.push_back({kernel, work, ours, library, [=] { return difference(out, other); }});
}

// Adds the gradients of a layer of `rows` x `features` to `hidden`.
void add_gradients(Comparisons& all, int64_t rows, int64_t hidden, int64_t features) {
  add_product(all, "gradient of data", false, rows, features, hidden);
  add_product(all, "gradient of weights", true, hidden, features, rows);
}

}  // namespace

void add_dense(Comparisons& all) {
  const int64_t works[][3] = {{1, 256, 256},    {1, 1024, 1024}, {1, 3072, 768},   {2, 768, 768},  {4, 1024, 1024},
                              {8, 1000, 2048},  {8, 3072, 768},  {16, 1024, 1024}, {32, 768, 768}, {64, 1024, 784},
                              {64, 4096, 4096}, {128, 768, 768}, {128, 3072, 768}, {512, 512, 512}};
  for (const auto& [rows, hidden, features] : works) add(all, rows, hidden, features);
  const int64_t gradients[][3] = {{32, 1024, 256}, {64, 1024, 1024}, {128, 512, 512}, {128, 512, 784}, {512, 768, 768}};
  for (const auto& [rows, hidden, features] : gradients) add_gradients(all, rows, hidden, features);
}

}  // namespace hybridnet::benchmarks
