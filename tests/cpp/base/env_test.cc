#include "hybridnet/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

// The environment is read once per process, so each case runs in a new one: "threadsafe" starts the binary again.
class EnvironmentDeathTest : public testing::Test {
 protected:
  EnvironmentDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  ~EnvironmentDeathTest() override {
    for (const char* name :
         {"HYBRIDNET_ENGINE_TYPE", "MXNET_ENGINE_TYPE", "HYBRIDNET_NUM_THREADS", "HYBRIDNET_INLINE_LIMIT_US",
          "HYBRIDNET_POOL_LIMIT_MB", "HYBRIDNET_ON_REWRITE", "HYBRIDNET_CUDA_LIBRARIES"}) {
      unsetenv(name);
    }
  }
  static void exit_with(bool right) { std::_Exit(right ? 0 : 1); }
};

TEST_F(EnvironmentDeathTest, HasDefaults) {
  EXPECT_EXIT(
      exit_with(environment().engine_type == "ThreadedEnginePerDevice" && environment().inline_limit_ns == 100'000 &&
                environment().pool_reserve_mb == -1 && environment().on_rewrite_error == "warn"),
      testing::ExitedWithCode(0), "");
}

TEST_F(EnvironmentDeathTest, ReadsWhatIsSet) {
  setenv("HYBRIDNET_NUM_THREADS", "3", 1);
  setenv("HYBRIDNET_INLINE_LIMIT_US", "0", 1);
  setenv("HYBRIDNET_POOL_LIMIT_MB", "64", 1);
  EXPECT_EXIT(exit_with(environment().num_threads == 3 && environment().inline_limit_ns == 0 &&
                        environment().pool_reserve_mb == 64),
              testing::ExitedWithCode(0), "");
}

TEST_F(EnvironmentDeathTest, ReadsNamesOfLibraries) {
  for (const char* all : {"", "1", "cublaslt,cudnn"}) {
    setenv("HYBRIDNET_CUDA_LIBRARIES", all, 1);
    EXPECT_EXIT(exit_with(environment().cuda_cublas_lt && environment().cuda_cudnn), testing::ExitedWithCode(0), "");
  }
  setenv("HYBRIDNET_CUDA_LIBRARIES", "cudnn", 1);
  EXPECT_EXIT(exit_with(!environment().cuda_cublas_lt && environment().cuda_cudnn), testing::ExitedWithCode(0), "");
  setenv("HYBRIDNET_CUDA_LIBRARIES", "0", 1);
  EXPECT_EXIT(exit_with(!environment().cuda_cublas_lt && !environment().cuda_cudnn), testing::ExitedWithCode(0), "");
}

TEST_F(EnvironmentDeathTest, OurNameForTheEngineWinsOverMXNets) {
  setenv("MXNET_ENGINE_TYPE", "NaiveEngine", 1);
  EXPECT_EXIT(exit_with(environment().engine_type == "NaiveEngine"), testing::ExitedWithCode(0), "");
  setenv("HYBRIDNET_ENGINE_TYPE", "ThreadedEngine", 1);
  EXPECT_EXIT(exit_with(environment().engine_type == "ThreadedEngine"), testing::ExitedWithCode(0), "");
}

void print_environment_error() {
  try {
    environment();
  } catch (const ValueError& error) {
    std::cerr << error.what();
    std::_Exit(3);
  }
}

TEST_F(EnvironmentDeathTest, BadValuesNameTheVariable) {
  setenv("HYBRIDNET_NUM_THREADS", "many", 1);
  EXPECT_EXIT(print_environment_error(), testing::ExitedWithCode(3), "HYBRIDNET_NUM_THREADS: expected .* got 'many'");
  unsetenv("HYBRIDNET_NUM_THREADS");
  setenv("HYBRIDNET_ON_REWRITE", "panic", 1);
  EXPECT_EXIT(print_environment_error(), testing::ExitedWithCode(3), "HYBRIDNET_ON_REWRITE: expected warn");
  unsetenv("HYBRIDNET_ON_REWRITE");
  setenv("HYBRIDNET_CUDA_LIBRARIES", "cublaslt,cudnn9", 1);
  EXPECT_EXIT(print_environment_error(), testing::ExitedWithCode(3),
              "HYBRIDNET_CUDA_LIBRARIES: expected 0, 1, or names");
  unsetenv("HYBRIDNET_CUDA_LIBRARIES");
  setenv("MXNET_ENGINE_TYPE", "Fast", 1);
  EXPECT_EXIT(print_environment_error(), testing::ExitedWithCode(3), "MXNET_ENGINE_TYPE: expected .* got 'Fast'");
}

}  // namespace
}  // namespace hybridnet
