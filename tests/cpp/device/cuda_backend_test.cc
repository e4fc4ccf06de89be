#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "cuda/backend.h"
#include "cuda/errors.h"
#include "device/scripted_driver.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

std::unique_ptr<device::Backend> make(int devices = 1, bool synchronous = false) {
  std::unique_ptr<const Driver> driver = scripted_driver();
  Script::get().devices = devices;
  std::string why;
  return make_cuda_backend(std::move(driver), {.synchronous = synchronous}, &why);
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const EngineError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(CudaBackend, GivesTheReasonWhenTheDriverHasNoDeviceOrDoesNotStart) {
  std::string why;
  std::unique_ptr<const Driver> driver = scripted_driver();
  Script::get().devices = 0;
  EXPECT_EQ(make_cuda_backend(std::move(driver), BackendOptions{}, &why), nullptr);
  EXPECT_EQ(why, "the driver reports no device");
  driver = scripted_driver();
  Script::get().failures["cuInit"] = 100;
  EXPECT_EQ(make_cuda_backend(std::move(driver), BackendOptions{}, &why), nullptr);
  EXPECT_EQ(why, "the driver reports no device");
  driver = scripted_driver();
  Script::get().failures["cuInit"] = 803;
  EXPECT_EQ(make_cuda_backend(std::move(driver), BackendOptions{}, &why), nullptr);
  EXPECT_TRUE(contains(why, "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)")) << why;
}

TEST(CudaBackend, DescribesItsDevicesWithoutMakingAContext) {
  const auto backend = make(2);
  EXPECT_EQ(backend->num_devices(), 2);
  EXPECT_EQ(backend->info(1).name, "Scripted");
  EXPECT_EQ(backend->info(1).architecture, "sm_90");
  EXPECT_EQ(backend->info(1).total_bytes, int64_t{1} << 33);
  EXPECT_EQ(Script::get().count("cuDevicePrimaryCtxRetain"), 0);
}

TEST(CudaBackend, SetsTheContextAtEachCallSinceOtherLibrariesMayHaveChangedIt) {
  const auto backend = make(2);
  backend->make_current(1);
  backend->make_current(1);
  EXPECT_EQ(Script::get().count("cuCtxSetCurrent"), 2);
  backend->make_current(0);
  std::thread([&] { backend->make_current(0); }).join();
  EXPECT_EQ(Script::get().count("cuCtxSetCurrent"), 4);
  EXPECT_EQ(Script::get().count("cuDevicePrimaryCtxRetain"), 2);
}

TEST(CudaBackend, ReturnsNullIfThereIsNoMemoryLeftAndThrowsOtherFailures) {
  const auto backend = make();
  Script::get().failures["cuMemAlloc_v2"] = kOutOfMemory;
  EXPECT_EQ(backend->allocate(1000), nullptr);
  Script::get().failures["cuMemAlloc_v2"] = 700;
  const std::string text = error_of([&] { backend->allocate(1000); });
  EXPECT_TRUE(contains(text, "CUDA: cuMemAlloc_v2 failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)")) << text;
  EXPECT_TRUE(contains(text, "restart the process")) << text;
}

TEST(CudaBackend, FreesOnTheDeviceOfTheBlockFromAnyThread) {
  const auto backend = make(2);
  backend->make_current(1);
  void* const block = backend->allocate(64);
  int device_of_free = -1;
  std::thread([&] {
    backend->free(block);
    device_of_free = Script::get().current;
  }).join();
  EXPECT_EQ(device_of_free, 1);
  EXPECT_TRUE(contains(error_of([&] { backend->free(block); }), "cuMemFree_v2")) << "freed twice";
}

TEST(CudaBackend, FreesWithoutAnErrorWhenAKernelHasFailed) {
  const auto backend = make(2);
  backend->make_current(0);
  void* const first = backend->allocate(64);
  void* const second = backend->allocate(64);
  Script::get().failures["cuMemFree_v2"] = 700;
  EXPECT_NO_THROW(backend->free(first));
  Script::get().failures["cuMemFree_v2"] = 1;
  EXPECT_THROW(backend->free(second), EngineError);
  EXPECT_EQ(Script::get().current, 0);
}

TEST(CudaBackend, StaysOnTheDeviceOfTheThreadWhenItFreesABlockOfAnother) {
  const auto backend = make(2);
  backend->make_current(1);
  void* const block = backend->allocate(64);
  backend->make_current(0);
  backend->free(block);
  EXPECT_EQ(Script::get().current, 0);
}

TEST(CudaBackend, AsksForMemoryOfADeviceWithoutChangingTheCurrentOne) {
  const auto backend = make(2);
  backend->make_current(0);
  EXPECT_EQ(backend->free_and_total_bytes(1), (std::pair<int64_t, int64_t>(101, 200)));
  EXPECT_EQ(Script::get().current, 0);
}

TEST(CudaBackend, CopiesInWithoutWaitingAndLargerThanTheRing) {
  const auto backend = make();
  const auto stream = backend->make_stream();
  std::string bytes(size_t{21} << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  void* const block = backend->allocate(static_cast<int64_t>(bytes.size()));
  backend->copy_in(stream, block, bytes.data(), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(std::memcmp(block, bytes.data(), bytes.size()), 0);
  for (int i = 0; i < 1000; ++i) backend->copy_in(stream, static_cast<char*>(block) + 7 * i, "1234567", 7);
  EXPECT_EQ(std::memcmp(static_cast<char*>(block) + 6986, "12345671234567", 14), 0);
  EXPECT_EQ(Script::get().count("cuStreamSynchronize"), 0);
  EXPECT_EQ(Script::get().count("cuMemHostAlloc"), 1);
  EXPECT_LT(Script::get().count("cuEventCreate"), 40);
}

TEST(CudaBackend, CopiesInAndWaitsWithoutPageLockedMemory) {
  const auto backend = make();
  const auto stream = backend->make_stream();
  Script::get().failures["cuMemHostAlloc"] = kOutOfMemory;
  void* const block = backend->allocate(8);
  backend->copy_in(stream, block, "abcdefg", 8);
  EXPECT_STREQ(static_cast<char*>(block), "abcdefg");
  EXPECT_EQ(Script::get().count("cuStreamSynchronize"), 1);
}

TEST(CudaBackend, CopiesInAgainAfterACopyFailed) {
  const auto backend = make();
  const auto stream = backend->make_stream();
  std::string bytes(size_t{12} << 20, 'x');
  void* const block = backend->allocate(static_cast<int64_t>(bytes.size()));
  Script::get().failures["cuMemcpyHtoDAsync_v2"] = 1;
  for (int i = 0; i < 20; ++i)
    EXPECT_THROW(backend->copy_in(stream, block, bytes.data(), static_cast<int64_t>(bytes.size())), EngineError);
  Script::get().failures.clear();
  backend->copy_in(stream, block, bytes.data(), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(std::memcmp(block, bytes.data(), bytes.size()), 0);
}

TEST(CudaBackend, TellsWhetherAnEventIsDone) {
  const auto backend = make();
  const auto event = backend->make_event();
  EXPECT_TRUE(backend->is_done(event));
  Script::get().failures["cuEventQuery"] = kNotReady;
  EXPECT_FALSE(backend->is_done(event));
  Script::get().failures["cuEventQuery"] = 719;
  EXPECT_THROW(backend->is_done(event), EngineError);
}

TEST(CudaBackend, NamesTheKernelWhoseLaunchFails) {
  const auto backend = make();
  const auto stream = backend->make_stream();
  const auto kernel = backend->function(backend->load("image"), "exp_f32");
  backend->launch(kernel, {}, stream, "args", 4);
  EXPECT_EQ(Script::get().kernel_argument, "args");
  Script::get().failures["cuLaunchKernel"] = 701;
  const std::string text = error_of([&] { backend->launch(kernel, {.grid = {7, 1, 1}}, stream, "args", 4); });
  EXPECT_TRUE(contains(text, "kernel 'exp_f32', grid (7, 1, 1), block (1, 1, 1)")) << text;
  EXPECT_EQ(Script::get().count("cuStreamSynchronize"), 0);
}

TEST(CudaBackend, NamesTheKernelThatFailsWhileItRunsIfLaunchesAreSynchronous) {
  const auto backend = make(1, true);
  const auto stream = backend->make_stream();
  const auto kernel = backend->function(backend->load("image"), "exp_f32");
  Script::get().failures["cuStreamSynchronize"] = 700;
  const std::string text = error_of([&] { backend->launch(kernel, {}, stream, "args", 4); });
  EXPECT_TRUE(contains(text, "kernel 'exp_f32'") && contains(text, "ILLEGAL_ADDRESS")) << text;
}

TEST(CudaBackend, ReportsTheDriversLogOfAnImageThatDoesNotLoad) {
  const auto backend = make();
  Script::get().failures["cuModuleLoadDataEx"] = 218;
  const std::string text = error_of([&] { backend->load("ptx"); });
  EXPECT_TRUE(contains(text, "CUDA_ERROR_INVALID_PTX (218): line 3: no such register")) << text;
}

TEST(CudaBackend, ReleasesAllThatItMadeInTheEnd) {
  auto backend = make();
  backend->make_stream();
  backend->make_event();
  backend->load("image");
  backend->allocate(64);
  backend.reset();
  EXPECT_EQ(Script::get().released, (std::vector<std::string>{"event", "stream", "module", "block", "context"}));
}

TEST(CudaBackend, RefusesToWorkInAForkedChildAndReleasesNothingThere) {
  auto backend = make();
  const auto stream = backend->make_stream();
  const auto event = backend->make_event();
  void* const block = backend->allocate(64);
  const pid_t child = fork();
  if (child == 0) {
    const int before = Script::get().total();
    const std::string text = error_of([&] { backend->allocate(1); });
    bool good = contains(text, "CUDA cannot be used after fork") && contains(text, "spawn");
    good = good && contains(error_of([&] { backend->make_current(0); }), "after fork");
    good = good && contains(error_of([&] { backend->synchronize(stream); }), "after fork");
    good = good && contains(error_of([&] { backend->is_done(event); }), "after fork");
    good = good && contains(error_of([&] { backend->copy_in(stream, block, "x", 1); }), "after fork");
    good = good && contains(error_of([&] { backend->compile("", "sm_90"); }), "after fork");
    backend->free(block);
    backend.reset();
    _exit(good && Script::get().total() == before ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  backend->free(block);
}

// Destroyed after the end of the process was noted, as arrays in static objects are.
struct Late {
  std::unique_ptr<device::Backend> backend;
  void* block = nullptr;
  ~Late() {
    if (!backend) return;
    const int before = Script::get().total();
    backend->free(block);
    backend.reset();
    _exit(Script::get().total() == before ? 0 : 1);
  }
};

TEST(CudaBackendDeathTest, CallsNoDriverOnceTheProcessEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child must not count as forked: it runs the program anew
  EXPECT_EXIT(
      {
        Script::get();
        static Late late;
        late.backend = make();
        late.block = late.backend->allocate(64);
        std::exit(2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CudaBackend, UsesNoLibraryThatIsTurnedOff) {
  std::string why;
  const auto backend = make_cuda_backend(scripted_driver(), {.cublas_lt = false, .cudnn = false}, &why);
  auto* const products = dynamic_cast<device::ProductLibrary*>(backend.get());
  auto* const convolutions = dynamic_cast<device::ConvolutionLibrary*>(backend.get());
  ASSERT_TRUE(products && convolutions);
  EXPECT_EQ(products->plan({.m = 64, .n = 64, .k = 1024, .lda = 1024, .ldb = 64, .ldc = 64}), nullptr);
  EXPECT_EQ(convolutions->plan(device::ConvolutionCall{.n = 1, .c = 64, .o = 64}), nullptr);
  const auto libraries = backend->libraries();
  const std::string reason = "turned off by HYBRIDNET_CUDA_LIBRARIES";
  EXPECT_EQ(libraries[libraries.size() - 2], std::pair(std::string("cuBLASLt"), reason));
  EXPECT_EQ(libraries.back(), std::pair(std::string("cuDNN"), reason));
}

}  // namespace
}  // namespace hybridnet::cuda
