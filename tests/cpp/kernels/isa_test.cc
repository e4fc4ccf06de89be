#include "kernels/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <numeric>
#include <vector>

#include "hybridnet/c_api.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"
#include "kernels/rnn/recurrent_step.h"

namespace hybridnet::kernels {
namespace {

// The cap is read when the library is loaded, so each case runs in a fresh process: "threadsafe" restarts the binary
// with the current environment.
class IsaDeathTest : public testing::Test {
 protected:
  IsaDeathTest() : best_(isa_in_force().level) { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  ~IsaDeathTest() override {
    max_isa_at_load().empty() ? unsetenv("HYBRIDNET_MAX_ISA")
                              : setenv("HYBRIDNET_MAX_ISA", max_isa_at_load().c_str(), 1);
  }
  static void print_isa_in_force() {
    std::cerr << hn_isa();
    std::_Exit(0);
  }
  static void print_environment_error() {
    try {
      environment();
    } catch (const ValueError& error) {
      std::cerr << error.what();
      std::_Exit(3);
    }
    std::_Exit(0);
  }
  Isa best_;
};

TEST_F(IsaDeathTest, EachWordCapsHighwayAndOneDnnTogether) {
  const struct {
    const char* word;
    const char* report;
  } cases[] = {{"sse4", "sse4 \\(Highway SSSE3, oneDNN SSE41\\)"},
               {"avx2", "avx2 \\(Highway AVX2, oneDNN AVX2\\)"},
               {"avx512", "avx512 \\(Highway AVX3(_DL)?, oneDNN AVX512_CORE\\)"},
               {"avx512_bf16", "avx512_bf16 \\(Highway AVX3(_DL)?, oneDNN AVX512_CORE_BF16\\)"}};
  for (size_t i = 0; i < std::size(cases) && i <= static_cast<size_t>(best_); ++i) {
    setenv("HYBRIDNET_MAX_ISA", cases[i].word, 1);
    EXPECT_EXIT(print_isa_in_force(), testing::ExitedWithCode(0), cases[i].report);
  }
}

// Packed weights of a recurrent step contain as many units side by side as a vector has lanes.
void print_length_of_vectors() {
  constexpr int64_t kUnits = 16, kState = 100;
  std::vector<float> weights(kUnits * kState), packed(weights.size());
  std::iota(weights.begin(), weights.end(), 0.0F);
  pack_recurrent(1, kUnits, kState, weights.data(), packed.data());
  int64_t together = 1;
  while (together < kUnits && packed[together] == static_cast<float>(together * kState)) ++together;
  std::cerr << together << " floats";
  std::_Exit(0);
}

// The report and the kernels, after the cap was set.
TEST_F(IsaDeathTest, KernelsObeyTheCap) {
  const struct {
    const char* word;
    const char* length;
  } cases[] = {{"sse4", "^4 floats"}, {"avx2", "^8 floats"}, {"avx512", "^16 floats"}};
  for (size_t i = 0; i < std::size(cases) && i <= static_cast<size_t>(best_); ++i) {
    setenv("HYBRIDNET_MAX_ISA", cases[i].word, 1);
    EXPECT_EXIT(print_length_of_vectors(), testing::ExitedWithCode(0), cases[i].length);
  }
}

TEST_F(IsaDeathTest, ACapAboveTheMachineChangesNothing) {
  const std::string best(isa_in_force().name);
  if (max_isa_at_load() == best) GTEST_SKIP() << "HYBRIDNET_MAX_ISA=" << best << " hides what this machine has";
  for (size_t i = static_cast<size_t>(best_) + 1; i < std::size(kIsaWords); ++i) {
    setenv("HYBRIDNET_MAX_ISA", std::string(kIsaWords[i]).c_str(), 1);
    EXPECT_EXIT(print_isa_in_force(), testing::ExitedWithCode(0), best + " \\(");
  }
}

TEST_F(IsaDeathTest, UnknownWordsAreErrorsThatNameTheChoices) {
  setenv("HYBRIDNET_MAX_ISA", "avx3", 1);
  EXPECT_EXIT(print_environment_error(), testing::ExitedWithCode(3),
              "HYBRIDNET_MAX_ISA: expected sse4 \\| avx2 \\| avx512 \\| avx512_bf16 \\| amx, got 'avx3'");
}

void print_error_of_a_late_cap() {
  setenv("HYBRIDNET_MAX_ISA", max_isa_at_load() == "sse4" ? "amx" : "sse4", 1);
  try {
    environment();
  } catch (const ValueError& error) {
    std::cerr << error.what();
    std::_Exit(3);
  }
}

TEST_F(IsaDeathTest, ACapThatComesTooLateIsAnError) {
  EXPECT_EXIT(print_error_of_a_late_cap(), testing::ExitedWithCode(3), "as when the library was loaded");
}

}  // namespace
}  // namespace hybridnet::kernels
