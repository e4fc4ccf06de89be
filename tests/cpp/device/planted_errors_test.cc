// The errors that programs of GPUs make: each one is planted, and the stand-in must find it. A row for each kind.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <ostream>

#include "device/stand_in.h"
#include "device/stand_in_kernels.h"

namespace hybridnet::test {
namespace {

class PlantedErrors;

struct Planted {
  const char* name;
  void (PlantedErrors::*plant)();
  const char* report;  // a part of it
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

class PlantedErrors : public StandIn, public ::testing::WithParamInterface<Planted> {
 public:
  void missing_event() {
    const Memory x = ones(), y = allocate(1024), z = allocate(1024);
    EXPECT_DONE(launch(twice(), 1, {x, y, 256}, stream_));
    const Handle other = make_stream();
    EXPECT_DONE(launch(twice(), 1, {y, z, 256}, other));
    EXPECT_DONE(call("cuStreamSynchronize", other));
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
  }
  void early_free() {
    const Memory x = ones(), y = allocate(1024);
    EXPECT_DONE(launch(twice(), 1, {x, y, 256}, stream_));
    free(x);
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
  }
  // Host code that touches device memory ends the process: a child does it.
  void host_access() {
    const Memory x = allocate(4096);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      *reinterpret_cast<volatile float*>(x) = 1.0f;
      _exit(0);
    }
    close(ends[1]);
    char text[256] = {};
    for (size_t at = 0; at + 1 < sizeof(text);) {
      const ssize_t count = read(ends[0], text + at, sizeof(text) - 1 - at);
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    close(ends[0]);
    waitpid(child, nullptr, 0);
    found_ = text;
  }
  void leak() {
    allocate(1000);
    EXPECT_GE(call("hnstandin_leaks"), 1);
  }
  void double_free() {
    const Memory x = allocate(64);
    free(x);
    EXPECT_EQ(call("cuMemFree_v2", x), 1);
  }
  void wrong_stream() {
    const Memory x = ones(), y = allocate(1024);
    const Handle gone = make_stream();
    EXPECT_DONE(call("cuStreamDestroy_v2", gone));
    EXPECT_EQ(launch(twice(), 1, {x, y, 256}, gone), 400);
  }
  void stale_graph_pointer() {
    const Memory x = ones(), y = allocate(1024);
    EXPECT_DONE(call("cuStreamBeginCapture_v2", stream_, 1));
    EXPECT_DONE(launch(twice(), 1, {x, y, 256}, stream_));
    Handle graph = nullptr, exec = nullptr;
    EXPECT_DONE(call("cuStreamEndCapture", stream_, &graph));
    EXPECT_DONE(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
    free(x);
    EXPECT_DONE(call("cuGraphLaunch", exec, stream_));
    EXPECT_EQ(call("cuStreamSynchronize", stream_), 700);
  }
  void unchecked_failure() {
    call("hnstandin_check_results", 1);
    const Handle event = make_event();
    call("hnstandin_fail", "cuEventRecord:1");
    EXPECT_EQ(call("cuEventRecord", event, stream_), 999);  // a caller that does not look goes on
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
    call("hnstandin_check_results", 0);
  }
  void use_after_fork() {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      _exit(call("cuCtxSynchronize"));
    }
    close(ends[1]);
    char text[256] = {};
    EXPECT_GT(read(ends[0], text, sizeof(text) - 1), 0);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 3) << "CUDA_ERROR_NOT_INITIALIZED";
    found_ = text;
  }
  void race_in_shared_memory() {
    const Memory x = ones(), y = allocate(1024);
    EXPECT_DONE(launch(function(module_of(kWrongKernels), "no_barrier"), 1, {x, y, 256}, stream_));
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
  }
  // Beside the ten.
  void wrong_context() {
    const Handle event = make_event();
    Handle second = nullptr;
    EXPECT_DONE(call("cuDevicePrimaryCtxRetain", &second, 1));
    EXPECT_DONE(call("cuCtxSetCurrent", second));
    EXPECT_EQ(call("cuEventRecord", event, make_stream()), 400);
  }
  void host_writes_what_a_copy_reads() {
    void* host = nullptr;
    EXPECT_DONE(call("cuMemHostAlloc", &host, size_t{64}, 0u));
    const Memory x = allocate(64);
    EXPECT_DONE(call("cuMemcpyHtoDAsync_v2", x, static_cast<const void*>(host), size_t{64}, stream_));
    *static_cast<int*>(host) = 1;
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
  }
  void host_reads_what_a_copy_writes() {
    void* host = nullptr;
    EXPECT_DONE(call("cuMemHostAlloc", &host, size_t{64}, 0u));
    EXPECT_DONE(call("cuMemcpyDtoHAsync_v2", host, ones(), size_t{64}, stream_));
    *static_cast<int*>(host) = 1;  // a read could not be told from one of other memory; a write is lost
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
  }

 protected:
  Handle twice() { return function(module_of(kKernels), "twice"); }
  Memory ones() { return upload(std::vector<float>(256, 1.0f)); }
  std::string found_;
};

TEST_P(PlantedErrors, AreFound) {
  (this->*GetParam().plant)();
  found_ += reports();
  EXPECT_NE(found_.find(GetParam().report), std::string::npos) << found_;
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedErrors,
    ::testing::Values(
        Planted{"missing_event", &PlantedErrors::missing_event, "race: 'twice' (stream "},
        Planted{"early_free", &PlantedErrors::early_free, "early free: "},
        Planted{"host_access", &PlantedErrors::host_access, "host access: host code wrote device memory"},
        Planted{"leak", &PlantedErrors::leak, "of 1000 bytes was not freed"},
        Planted{"double_free", &PlantedErrors::double_free, "double free: cuMemFree"},
        Planted{"wrong_stream", &PlantedErrors::wrong_stream, "stale stream: cuLaunchKernel gets a destroyed stream"},
        Planted{"stale_graph_pointer", &PlantedErrors::stale_graph_pointer, "bad access: kernel 'twice'"},
        Planted{"unchecked_failure", &PlantedErrors::unchecked_failure,
                "unchecked failure: cuEventRecord returned CUDA_ERROR_UNKNOWN, and its thread called "
                "cuStreamSynchronize"},
        Planted{"use_after_fork", &PlantedErrors::use_after_fork, "fork: cuCtxSynchronize is called in a child"},
        Planted{"race_in_shared_memory", &PlantedErrors::race_in_shared_memory, "shared memory race: kernel"},
        Planted{"wrong_context", &PlantedErrors::wrong_context,
                "wrong context: cuEventRecord of an event of device 0 in a stream of device 1"},
        Planted{"host_writes_what_a_copy_reads", &PlantedErrors::host_writes_what_a_copy_reads,
                "race: the host wrote pinned memory before 'cuMemcpyHtoDAsync'"},
        Planted{"host_reads_what_a_copy_writes", &PlantedErrors::host_reads_what_a_copy_writes,
                "race: the host wrote pinned memory before 'cuMemcpyDtoHAsync'"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hybridnet::test
