// The stand-in for libcuda and NVRTC (tests/cuda) for tests of itself: loaded beside libhybridnet.so, with the few
// calls that the tests need.
// Owner:   each test makes one; the library stays loaded.
// Threads: one.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/stand_in.h"
#include "device/backend.h"

namespace hybridnet::test {

// Checks that a driver function succeeds.
#define EXPECT_DONE(call) EXPECT_EQ((call), 0)

class StandIn : public ::testing::Test {
 protected:
  using Memory = uint64_t;
  using Handle = void*;
  struct Arguments {
    Memory in, out;
    int64_t n;
  };

  void SetUp() override {
    setenv("HNSTANDIN_DEVICES", "2", 0);  // read at the first call
    library_ = dlopen(cuda::stand_in_library().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) GTEST_SKIP() << "no stand-in: " << dlerror();
    call("hnstandin_reset");
    call("hnstandin_order", 0);
    call("hnstandin_seed", 0ull);
    Handle context = nullptr;
    ASSERT_EQ(call("cuInit", 0u), 0);
    ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &context, 0), 0);
    ASSERT_EQ(call("cuCtxSetCurrent", context), 0);
    stream_ = make_stream();
  }
  void TearDown() override {
    if (!library_) return;
    call("cuStreamSynchronize", stream_);
    call("hnstandin_reset");
  }

  template <class... Parameters>
  int call(const char* function, Parameters... arguments) {
    auto* address = reinterpret_cast<int (*)(Parameters...)>(dlsym(library_, function));
    if (!address) ADD_FAILURE() << "the stand-in lacks " << function;
    return address ? address(arguments...) : -1;
  }

  // The texts of the reports since the last call.
  std::string reports() {
    std::string text(1 << 16, '\0');
    call("hnstandin_reports", text.data(), static_cast<int>(text.size()));
    text.resize(text.find('\0'));
    call("hnstandin_reset");
    return text;
  }

  Handle make_stream() {
    Handle stream = nullptr;
    EXPECT_DONE(call("cuStreamCreate", &stream, 1u));
    return stream;
  }
  Handle make_event() {
    Handle event = nullptr;
    EXPECT_DONE(call("cuEventCreate", &event, 2u));
    return event;
  }
  Memory allocate(size_t bytes) {
    Memory memory = 0;
    EXPECT_DONE(call("cuMemAlloc_v2", &memory, bytes));
    return memory;
  }
  Memory upload(const std::vector<float>& values) {
    const Memory memory = allocate(values.size() * sizeof(float));
    EXPECT_DONE(call("cuMemcpyHtoDAsync_v2", memory, static_cast<const void*>(values.data()),
                     values.size() * sizeof(float), stream_));
    EXPECT_DONE(call("cuStreamSynchronize", stream_));
    return memory;
  }
  std::vector<float> download(Memory memory, size_t count) {
    std::vector<float> values(count);
    EXPECT_DONE(
        call("cuMemcpyDtoHAsync_v2", static_cast<void*>(values.data()), memory, count * sizeof(float), stream_));
    return values;
  }
  void free(Memory memory) { EXPECT_DONE(call("cuMemFree_v2", memory)); }

  // The compiler's log if the text does not compile.
  std::string compile(const std::string& text, std::string* image, bool as_ptx = false) {
    std::vector<std::string> texts;
    for (const auto& header : device::kernel_headers()) texts.emplace_back(header.text);
    std::vector<const char*> headers, names;
    for (const auto& header : device::kernel_headers()) names.push_back(header.name);
    for (const std::string& header : texts) headers.push_back(header.c_str());
    Handle program = nullptr;
    EXPECT_DONE(call("nvrtcCreateProgram", &program, text.c_str(), "test.cu", static_cast<int>(names.size()),
                     headers.data(), names.data()));
    const int result = call("nvrtcCompileProgram", program, 0, static_cast<const char* const*>(nullptr));
    size_t bytes = 0;
    call("nvrtcGetProgramLogSize", program, &bytes);
    std::string log(bytes, '\0');
    call("nvrtcGetProgramLog", program, log.data());
    log.resize(log.find('\0'));
    if (result == 0) {
      log.clear();
      call(as_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", program, &bytes);
      image->resize(bytes);
      call(as_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", program, image->data());
    }
    call("nvrtcDestroyProgram", &program);
    return log;
  }
  // The module of a text; each text is compiled once for the process.
  Handle module_of(const std::string& text, bool as_ptx = false);

  Handle function(Handle module, const char* name) {
    Handle found = nullptr;
    EXPECT_DONE(call("cuModuleGetFunction", &found, module, name));
    return found;
  }
  int launch(Handle kernel, unsigned blocks, Arguments a, Handle stream) {
    void* arguments[] = {&a};
    return call("cuLaunchKernel", kernel, blocks, 1u, 1u, 256u, 1u, 1u, 0u, stream, static_cast<void**>(arguments),
                static_cast<void**>(nullptr));
  }

  Handle library_ = nullptr;
  Handle stream_ = nullptr;
};

inline StandIn::Handle StandIn::module_of(const std::string& text, bool as_ptx) {
  static auto& modules = *new std::vector<std::pair<std::string, Handle>>;
  for (const auto& [known, module] : modules)
    if (known == text) return module;
  std::string image;
  EXPECT_EQ(compile(text, &image, as_ptx), "");
  Handle module = nullptr;
  EXPECT_DONE(call("cuModuleLoadDataEx", &module, static_cast<const void*>(image.data()), 0u,
                   static_cast<int*>(nullptr), static_cast<void**>(nullptr)));
  modules.emplace_back(text, module);
  return module;
}

}  // namespace hybridnet::test
