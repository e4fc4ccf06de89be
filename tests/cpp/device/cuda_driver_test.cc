#include <gtest/gtest.h>

#include <set>

#include "cuda/driver.h"
#include "cuda/errors.h"
#include "device/scripted_driver.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(CudaDriver, EveryFunctionIsDeclaredOnce) {
  const Driver driver;
  std::set<std::string> names;
  for (const Symbol* symbol : driver.table()) {
    EXPECT_TRUE(names.insert(symbol->name).second) << symbol->name;
    EXPECT_TRUE(symbol->need == Need::kOptional || symbol->since <= kOldestDriver) << symbol->name;
    EXPECT_EQ(symbol->address, nullptr);
  }
  EXPECT_TRUE(names.count("cuLaunchKernel"));
}

TEST(CudaDriver, GivesTheReasonForAMissingLibrary) {
  std::string why;
  EXPECT_EQ(load_driver("/nonexistent/libcuda.so.1", &why), nullptr);
  EXPECT_TRUE(contains(why, "HYBRIDNET_CUDA_DRIVER=/nonexistent/libcuda.so.1 cannot be loaded")) << why;
  EXPECT_EQ(load_driver("none", &why), nullptr);
  EXPECT_EQ(why, "HYBRIDNET_CUDA_DRIVER=none: GPUs are turned off");
}

TEST(CudaDriver, NamesTheFunctionThatALibraryLacks) {
  std::string why;
  EXPECT_EQ(load_driver("libm.so.6", &why), nullptr);
  EXPECT_EQ(why, "the driver lacks the function cuInit, which drivers have since CUDA 2.0");
}

TEST(CudaDriver, NamesTheVersionOfADriverThatIsTooOld) {
  std::unique_ptr<const Driver> driver = scripted_driver();
  Script::get().version = 11040;
  EXPECT_EQ(why_unusable(*driver), "the driver is older than CUDA 12.0 (version 11.4)");
}

TEST(CudaDriver, NamesARequiredFunctionThatIsMissingInANewDriver) {
  Driver driver;
  for (Symbol* symbol : driver.table()) symbol->address = &driver;
  set(
      driver.driver_version, +[](int* version) {
        *version = 13000;
        return 0;
      });
  EXPECT_EQ(why_unusable(driver), "");
  driver.is_capturing.address = nullptr;
  EXPECT_EQ(why_unusable(driver), "") << "an optional function may be missing";
  driver.release_context.address = nullptr;
  EXPECT_EQ(why_unusable(driver),
            "the driver lacks the function cuDevicePrimaryCtxRelease_v2, which drivers have since CUDA 11.0");
}

TEST(CudaDriver, FormatsVersions) {
  EXPECT_EQ(version_text(12000), "12.0");
  EXPECT_EQ(version_text(11040), "11.4");
  EXPECT_EQ(version_text(13010), "13.1");
}

TEST(CudaErrors, NameTheFunctionTheErrorAndItsNumber) {
  try {
    check(700, "cuLaunchKernel");
    FAIL();
  } catch (const EngineError& error) {
    EXPECT_EQ(error.fields().message, "CUDA: cuLaunchKernel failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    EXPECT_TRUE(contains(error.fields().fix, "restart the process"));
    EXPECT_TRUE(contains(error.fields().fix, "HYBRIDNET_CUDA_SYNC=1"));
  }
  EXPECT_NO_THROW(check(0, "cuLaunchKernel"));
}

TEST(CudaErrors, OnlyErrorsThatDamageTheContextAreSticky) {
  for (const Result result : {214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719}) EXPECT_TRUE(is_sticky(result));
  for (const Result result : {0, 1, 2, 4, 100, 201, 400, 600, 701, 720, 801, 900}) EXPECT_FALSE(is_sticky(result));
}

TEST(CudaErrors, AskTheDriverForNamesThatAreNotKnown) {
  set_error_names(nullptr);
  EXPECT_EQ(error_text(911), "error (911)");
  set_error_names(+[](Result, const char** name) {
    *name = "CUDA_ERROR_OF_THE_FUTURE";
    return 0;
  });
  EXPECT_EQ(error_text(911), "CUDA_ERROR_OF_THE_FUTURE (911)");
  set_error_names(nullptr);
}

}  // namespace
}  // namespace hybridnet::cuda
