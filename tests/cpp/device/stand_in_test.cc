// The stand-in computes what kernels say, and finds planted errors of kernels and of their callers.
#include "device/stand_in.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <numeric>

#include "device/stand_in_kernels.h"

namespace hybridnet::test {
namespace {

std::vector<float> numbers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 97) * 0.25f - 7.0f;
  return values;
}

class StandInKernels : public StandIn, public ::testing::WithParamInterface<int> {
 protected:
  std::vector<float> run(const char* name, unsigned blocks, const std::vector<float>& in, size_t out_count, int64_t n) {
    call("hnstandin_order", GetParam());
    const Memory x = upload(in), y = allocate(out_count * sizeof(float));
    EXPECT_DONE(launch(function(module_of(kKernels), name), blocks, {x, y, n}, stream_));
    const std::vector<float> out = download(y, out_count);
    free(x);
    free(y);
    EXPECT_EQ(reports(), "");
    return out;
  }
};

TEST_P(StandInKernels, ComputeEachElementOfAnArray) {
  const std::vector<float> in = numbers(100000);
  const std::vector<float> out = run("twice", 7, in, in.size(), 100000);
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], in[i] * 2.0f) << i;
}

TEST_P(StandInKernels, SumRowsInSharedMemory) {
  const std::vector<float> in = numbers(10 * 1000);
  const std::vector<float> out = run("row_sum", 10, in, 10, 1000);
  for (size_t row = 0; row < 10; ++row)
    EXPECT_EQ(out[row], static_cast<float>(std::accumulate(in.begin() + static_cast<long>(row * 1000),
                                                           in.begin() + static_cast<long>((row + 1) * 1000), 0.0)));
}

TEST_P(StandInKernels, SumWarpsByShuffles) {
  const std::vector<float> in = numbers(256), out = run("warp_sum", 1, in, 256, 256);
  for (size_t i = 0; i < 256; ++i) {
    const auto begin = in.begin() + static_cast<long>(i / 32 * 32);
    EXPECT_EQ(out[i], std::accumulate(begin, begin + 32, 0.0f)) << i;
  }
}

TEST_P(StandInKernels, KeepTheirOwnValueBeyondTheLastLane) {
  const std::vector<float> in = numbers(256), out = run("shift_down", 1, in, 256, 256);
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], in[i % 32 + 3 < 32 ? i + 3 : i]) << i;
}

TEST_P(StandInKernels, MayUseSharedMemoryOfTheirWarpAfterSyncwarp) {
  const std::vector<float> in = numbers(256), out = run("neighbor_of_warp", 1, in, 256, 256);
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], in[i ^ 1]);
}

INSTANTIATE_TEST_SUITE_P(Orders, StandInKernels, ::testing::Values(0, 1, 2));

// ---- planted errors of kernels
class StandInFinds : public StandIn {
 protected:
  std::string reports_of(const char* kernel, int expected_result) {
    const Memory x = upload(numbers(256)), y = allocate(1024);
    EXPECT_DONE(launch(function(module_of(kWrongKernels), kernel), 1, {x, y, 256}, stream_));
    EXPECT_EQ(call("cuStreamSynchronize", stream_), expected_result);
    EXPECT_EQ(call("cuStreamSynchronize", stream_), expected_result) << "a broken context stays broken";
    const std::string found = reports();
    free(x);
    free(y);
    return found;
  }
  void expect(const std::string& text, const char* part) { EXPECT_NE(text.find(part), std::string::npos) << text; }
};

TEST_F(StandInFinds, ARaceInSharedMemory) {
  expect(reports_of("no_barrier", 0), "shared memory race: kernel 'no_barrier', block (0, 0, 0): thread ");
  expect(reports_of("no_barrier_before_write", 0), "read since the last barrier");
}
TEST_F(StandInFinds, AReadOfSharedMemoryThatNobodyWrote) {
  expect(reports_of("never_written", 0), "reads tile[0], which no thread wrote");
}
TEST_F(StandInFinds, AnIndexBeyondSharedMemory) {
  expect(reports_of("too_far", 0), "tile[255], which is out of range");
}
TEST_F(StandInFinds, ABarrierThatSomeThreadsNeverReach) {
  expect(reports_of("barrier_for_some", 719), "kernel 'barrier_for_some', block (0, 0, 0): 100 threads wait");
  expect(reports_of("barrier_alone", 719), "declared by HN_KERNEL");
}
TEST_F(StandInFinds, AShuffleThatALaneNeverReaches) {
  expect(reports_of("shuffle_for_some", 719), "wait for lanes of their warp");
}
TEST_F(StandInFinds, AKernelThatLeavesItsMemory) {
  expect(reports_of("beyond", 700), "bad access: kernel 'beyond' touches 0x");
}
TEST_F(StandInFinds, TextThatDoesNotCompile) {
  std::string image;
  expect(compile("int x = nothing;", &image), "test.cu:1:9: error: 'nothing' was not declared");
}

// ---- planted errors of callers
TEST_F(StandInFinds, AMissingWaitForAnEvent) {
  const Handle twice = function(module_of(kKernels), "twice"), other = make_stream(), event = make_event();
  const Memory x = upload(numbers(256)), y = allocate(1024), z = allocate(1024);
  for (const bool waits : {true, false}) {
    EXPECT_DONE(launch(twice, 1, {x, y, 256}, stream_));
    EXPECT_DONE(call("cuEventRecord", event, stream_));
    if (waits) {
      EXPECT_DONE(call("cuStreamWaitEvent", other, event, 0u));
    }
    EXPECT_DONE(launch(twice, 1, {y, z, 256}, other));
    EXPECT_DONE(call("cuStreamSynchronize", other));
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
    const std::string found = reports();
    if (waits) {
      EXPECT_EQ(found, "");
    } else {
      expect(found, "race: 'twice' (stream ");
    }
  }
  for (const Memory memory : {x, y, z}) free(memory);
  EXPECT_EQ(reports(), "");
}

TEST_F(StandInFinds, MemoryThatIsFreedTooEarly) {
  const Handle twice = function(module_of(kKernels), "twice");
  const Memory x = upload(numbers(256)), y = allocate(1024);
  EXPECT_DONE(launch(twice, 1, {x, y, 256}, stream_));
  free(x);  // the launch has not been waited for
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  expect(reports(), "early free: 'twice'");
  free(y);
  EXPECT_EQ(reports(), "");
  EXPECT_EQ(call("cuMemFree_v2", y), 1);
  expect(reports(), "double free: ");
  EXPECT_EQ(call("cuMemsetD8Async", y, static_cast<unsigned char>(0), size_t{16}, stream_), 1);
  reports();
}

TEST_F(StandInFinds, HostCodeThatTouchesDeviceMemory) {
  const Memory x = allocate(4096);
  EXPECT_DEATH(*reinterpret_cast<volatile float*>(x + 16) = 1.0f,
               "host code wrote device memory 0x[0-9a-f]* \\+ 16 of an allocation of 4096 bytes");
  EXPECT_DEATH(static_cast<void>(*reinterpret_cast<volatile float*>(x)), "host code read device memory");
  free(x);
}

TEST_F(StandInFinds, HostMemoryInTheArgumentsOfAKernel) {
  std::vector<float> host(256);
  const Memory y = allocate(1024);
  EXPECT_DONE(
      launch(function(module_of(kKernels), "twice"), 1, {reinterpret_cast<Memory>(host.data()), y, 256}, stream_));
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  expect(reports(), "host pointer: kernel 'twice' gets 0x");
  free(y);
}

TEST_F(StandInFinds, MemoryThatIsNeverFreed) {
  const Memory x = allocate(1000);
  EXPECT_GE(call("hnstandin_leaks"), 1);
  expect(reports(), "of 1000 bytes was not freed");
  free(x);
}

TEST_F(StandInFinds, HandlesThatAreGone) {
  const Handle event = make_event(), stream = make_stream();
  EXPECT_DONE(call("cuStreamWaitEvent", stream, event, 0u));
  expect(reports(), "never recorded");
  EXPECT_DONE(call("cuEventDestroy_v2", event));
  EXPECT_EQ(call("cuEventRecord", event, stream), 400);
  expect(reports(), "stale event: cuEventRecord gets a destroyed event");
  EXPECT_DONE(call("cuStreamDestroy_v2", stream));
  EXPECT_EQ(call("cuStreamSynchronize", stream), 400);
  expect(reports(), "stale stream: cuStreamSynchronize");
}

TEST_F(StandInFinds, UseAfterFork) {
  const pid_t child = fork();
  if (child == 0) _exit(call("cuCtxSynchronize"));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3) << "CUDA_ERROR_NOT_INITIALIZED";
}

TEST_F(StandInFinds, AHostThatWritesPinnedMemoryInUse) {
  void* host = nullptr;
  EXPECT_DONE(call("cuMemHostAlloc", &host, size_t{64}, 0u));
  const Memory x = allocate(64);
  EXPECT_DONE(call("cuMemcpyHtoDAsync_v2", x, static_cast<const void*>(host), size_t{64}, stream_));
  *static_cast<int*>(host) = 1;
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  expect(reports(), "the host wrote pinned memory");
  free(x);
  EXPECT_DONE(call("cuMemFreeHost", host));
  EXPECT_EQ(reports(), "");
}

TEST_F(StandIn, FailsTheCallThatATestNames) {
  call("hnstandin_fail", "cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY,cuStreamSynchronize:1");
  free(allocate(16));
  Memory memory = 0;
  EXPECT_EQ(call("cuMemAlloc_v2", &memory, size_t{16}), 2);
  EXPECT_EQ(call("cuStreamSynchronize", stream_), 999);
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  call("hnstandin_fail", "any:2:700");
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  EXPECT_EQ(call("cuStreamSynchronize", stream_), 700);
}

TEST_F(StandIn, ReturnsOutOfMemoryBeyondItsLimit) {
  size_t free_bytes = 0, total = 0;
  EXPECT_DONE(call("cuMemGetInfo_v2", &free_bytes, &total));
  Memory memory = 0;
  EXPECT_EQ(call("cuMemAlloc_v2", &memory, free_bytes + 1), 2);
}

TEST_F(StandIn, FillsFreshMemoryWithNaN) {
  const Memory x = allocate(64);
  for (const float value : download(x, 16)) EXPECT_TRUE(std::isnan(value));
  free(x);
}

// Work of independent streams runs in different orders; what events order, and its result, stay the same.
TEST_F(StandIn, GivesOneResultForAllSeeds) {
  const Handle module = module_of(kKernels), twice = function(module, "twice"), add = function(module, "add_one");
  const Handle other = make_stream(), event = make_event(), back = make_event();
  for (unsigned long long seed = 0; seed < 20; ++seed) {
    call("hnstandin_seed", seed);
    const Memory x = upload(numbers(256)), y = allocate(1024);
    EXPECT_DONE(launch(twice, 1, {x, y, 256}, stream_));
    EXPECT_DONE(call("cuEventRecord", event, stream_));
    EXPECT_DONE(call("cuStreamWaitEvent", other, event, 0u));
    EXPECT_DONE(launch(add, 1, {x, y, 256}, other));
    EXPECT_DONE(call("cuEventRecord", back, other));
    EXPECT_DONE(call("cuStreamWaitEvent", stream_, back, 0u));
    EXPECT_EQ(download(y, 256)[3], numbers(256)[3] * 2.0f + 1.0f);
    free(x);
    free(y);
    EXPECT_EQ(reports(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace hybridnet::test
