#include "kernels/linalg/lapack.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>

#include "hybridnet/env.h"
#include "hybridnet/threads.h"
#include "kernels/isa.h"
#include "kernels/linalg/factorizations.h"
#include "ops/op_samples.h"

namespace hybridnet::kernels {
namespace {

using testing::random_values;

// Returns a function of OpenBLAS that reports its state; the library must have been loaded.
template <typename F>
F* of_openblas(const char* name) {
  Dl_info info;
  dladdr(reinterpret_cast<const void*>(&blas_size), &info);
  const auto file = std::filesystem::path(info.dli_fname).parent_path() / "libscipy_openblas.so";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) {
    std::cerr << "not loaded: " << file;
    std::_Exit(2);
  }
  return reinterpret_cast<F*>(dlsym(library, name));
}

auto threads_of_the_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

[[noreturn]] void load_and_print() {
  const auto threads = threads_of_the_process();
  lapack<double>();
  std::cerr << of_openblas<const char*()>("scipy_openblas_get_corename")() << ", computes on "
            << of_openblas<int()>("scipy_openblas_get_num_threads")() << ", started "
            << threads_of_the_process() - threads << ", variable "
            << (std::getenv("OPENBLAS_CORETYPE") ? std::getenv("OPENBLAS_CORETYPE") : "removed");
  std::_Exit(0);
}

class VariableForTest {
 public:
  VariableForTest(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~VariableForTest() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Runs in fresh processes, like isa_test.cc.
TEST(LapackDeathTest, LoadingStartsNoThreadsLeavesNoVariableAndObeysTheCap) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const VariableForTest none("OPENBLAS_CORETYPE", nullptr);
  const struct {
    Isa level;
    const char* word;
    const char* core;
  } cases[] = {{Isa::kSse4, "sse4", "Nehalem"}, {Isa::kAvx2, "avx2", "Haswell"}, {Isa::kAvx512, "avx512", "SkylakeX"}};
  for (const auto& c : cases) {
    if (c.level > isa_in_force().level) continue;
    const VariableForTest cap("HYBRIDNET_MAX_ISA", c.word);
    EXPECT_EXIT(load_and_print(), ::testing::ExitedWithCode(0),
                std::string(c.core) + ", computes on 1, started 0, variable removed");
  }
}

TEST(LapackDeathTest, AnOlderProcessorInTheEnvironmentDoesNotSlowProductsDown) {
  if (isa_in_force().level < Isa::kAvx2) GTEST_SKIP() << "needs AVX2, where the processor is set in any case";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const VariableForTest cap("HYBRIDNET_MAX_ISA", "avx2"), older("OPENBLAS_CORETYPE", "Nehalem");
  EXPECT_EXIT(load_and_print(), ::testing::ExitedWithCode(0), "Haswell, computes on 1, started 0, variable Nehalem");
}

template <typename T>
std::vector<T> random_matrix(int64_t n) {
  const std::vector<double> values = random_values(n * n, -1, 1, 3);
  return {values.begin(), values.end()};
}

template <typename T>
std::vector<T> positive_matrix(int64_t n) {
  std::vector<T> a = random_matrix<T>(n);
  for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i * n + i)] = static_cast<T>(n);
  return a;
}

// Expects equal results of f for 1, 2 and 4 cores.
template <typename F>
void expect_same_bits(F&& f) {
  const CoreScope one(1);
  const auto expected = f();
  for (const int cores : {2, 4}) {
    const CoreScope scope(cores);
    EXPECT_EQ(f(), expected) << cores << " cores";
  }
}

template <typename T>
class Factorization : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Factorization, Types);

// Three blocks of rows, so that solves and products between them run on several cores.
constexpr int64_t kLarge = 800;

TYPED_TEST(Factorization, CholeskyInBlocksHasTheSameBitsForAnyNumberOfCores) {
  const auto a = positive_matrix<TypeParam>(kLarge);
  const auto factor = [&] {
    auto l = a;
    EXPECT_EQ(cholesky(kLarge, l.data()), -1);
    return l;
  };
  expect_same_bits(factor);
  const auto l = factor();
  for (const int64_t i : {int64_t{0}, int64_t{383}, int64_t{384}, int64_t{768}, kLarge - 1})
    for (int64_t j = 0; j <= i; j += 7) {
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k)
        sum += static_cast<double>(l[static_cast<size_t>(i * kLarge + k)]) *
               static_cast<double>(l[static_cast<size_t>(j * kLarge + k)]);
      EXPECT_NEAR(sum, static_cast<double>(a[static_cast<size_t>(i * kLarge + j)]),
                  sizeof(TypeParam) == 4 ? 1e-3 : 1e-11);
    }
}

TYPED_TEST(Factorization, CholeskyNamesTheRowThatFailsInLaterBlocksAndWhereValuesAreNotFinite) {
  for (const int64_t row : {int64_t{0}, int64_t{383}, int64_t{384}, int64_t{500}, kLarge - 1})
    for (const double value : {-1.0, std::nan(""), HUGE_VAL}) {
      auto a = positive_matrix<TypeParam>(kLarge);
      a[static_cast<size_t>(row * kLarge + row)] = static_cast<TypeParam>(value);
      EXPECT_EQ(cholesky(kLarge, a.data()), row) << value;
    }
}

TYPED_TEST(Factorization, LuInBlocksSolvesWithTheSameBitsForAnyNumberOfCores) {
  Runtime::get();  // owns the storage
  const int64_t columns = 500;
  const auto a = random_matrix<TypeParam>(kLarge);
  const std::vector<double> values = random_values(kLarge * columns, -1, 1, 4);
  const std::vector<TypeParam> b(values.begin(), values.end());
  const auto solve = [&] {
    auto lu = a;
    std::vector<TypeParam> x(b.size());
    LuFactors<TypeParam>(kLarge, lu.data()).solve(b.data(), columns, x.data());
    return x;
  };
  expect_same_bits(solve);
  const auto x = solve();
  for (const int64_t i : {int64_t{0}, int64_t{384}, kLarge - 1})
    for (const int64_t j : {int64_t{0}, int64_t{191}, int64_t{192}, columns - 1}) {
      double sum = 0;
      for (int64_t k = 0; k < kLarge; ++k)
        sum += static_cast<double>(a[static_cast<size_t>(i * kLarge + k)]) *
               static_cast<double>(x[static_cast<size_t>(k * columns + j)]);
      EXPECT_NEAR(sum, static_cast<double>(b[static_cast<size_t>(i * columns + j)]),
                  sizeof(TypeParam) == 4 ? 2e-2 : 1e-10);
    }
}

TYPED_TEST(Factorization, SolvesOfAnyKindHaveTheSameBitsForAnyNumberOfCores) {
  const int64_t n = 300, systems = 700;
  const auto a = positive_matrix<TypeParam>(n);
  const std::vector<double> values = random_values(n * systems, -1, 1, 4);
  for (int kind = 0; kind < 16; ++kind) {
    const Triangle t{(kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0, (kind & 8) != 0};
    expect_same_bits([&] {
      std::vector<TypeParam> x(values.begin(), values.end());
      solve_triangular(t, t.right ? systems : n, t.right ? n : systems, a.data(), n, x.data(), t.right ? n : systems);
      return x;
    });
  }
}

}  // namespace
}  // namespace hybridnet::kernels
