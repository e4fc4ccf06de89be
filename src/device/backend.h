// Interface to a kind of accelerator: memory, streams, events, copies, compiled kernels. The rest of src/device is
// written against this interface; src/cuda implements it.
// Owner:   Runtime, for the life of the process. Handles belong to the backend.
// Threads: every member is safe from any thread. Members with a stream, and load(), use the device that the thread made
//          current.
// Throws:  EngineError with the name of the failed call; allocate() returns null if there is no memory left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/user_source.h"

namespace hybridnet::device {

struct DeviceInfo {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // of compiled kernels: "sm_90"
  int64_t total_bytes = 0;
  int multiprocessors = 0;
};

// The size of a launch: blocks of threads. At most 1024 threads in a block; grid[1] and grid[2] are at most 65535.
struct Geometry {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
};

// The kind of image that compile() makes. Text that calls functions which only the driver has, as
// cudaGraphSetConditional, needs kLinkedByDriver: the driver finishes such an image when it loads it.
enum class ImageKind : uint8_t { kFinished, kLinkedByDriver };

class Backend {
 public:
  using Stream = struct StreamHandle*;  // types of their own, which a backend casts: synchronize() takes both
  using Event = struct EventHandle*;
  using Module = void*;
  using Function = void*;

  virtual ~Backend() = default;
  virtual int num_devices() const = 0;
  virtual DeviceInfo info(int device) const = 0;
  // Libraries in use and what is known of them, such as {"NVRTC", "13.0, /usr/lib/libnvrtc.so"}; loads the compiler.
  virtual std::vector<std::pair<std::string, std::string>> libraries() { return {}; }
  virtual void make_current(int device) = 0;  // for this thread

  virtual void* allocate(int64_t bytes) = 0;  // on the current device, 256-byte aligned
  virtual void free(void* memory) = 0;        // no work on it may be unfinished
  virtual std::pair<int64_t, int64_t> free_and_total_bytes(int device) = 0;

  virtual Stream make_stream() = 0;
  virtual Event make_event() = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;  // work pushed to the stream from now on follows the event
  virtual bool is_done(Event event) = 0;
  virtual void synchronize(Event event) = 0;  // waits on the calling thread
  virtual void synchronize(Stream stream) = 0;

  // Copies in the order of the stream. Host memory may be reused when copy_in() returns; copy_out() returns when the
  // bytes have arrived.
  virtual void copy_in(Stream stream, void* to, const void* from_host, int64_t bytes) = 0;
  virtual void copy_out(Stream stream, void* to_host, const void* from, int64_t bytes) = 0;
  virtual void copy(Stream stream, void* to, const void* from, int64_t bytes) = 0;
  virtual void fill_bytes(Stream stream, void* to, uint8_t value, int64_t bytes) = 0;

  // Compiles a translation unit for an architecture: the image that load() takes. Needs no device.
  virtual std::string compile(std::string_view text, std::string_view architecture,
                              ImageKind kind = ImageKind::kFinished) = 0;
  virtual Module load(std::string_view image) = 0;
  virtual Function function(Module module, const char* entry) = 0;
  // arguments: the parameter of the kernel, one struct of `bytes` bytes, which is copied.
  virtual void launch(Function function, const Geometry& geometry, Stream stream, const void* arguments,
                      size_t bytes) = 0;

  // Graphs: launches in order that are pushed by one call. free_graph() may be called while one runs. A part of a
  // graph, from kIf or kWhile to its kEnd, runs as long as its condition is not 0 (kIf: at most once). Each part has a
  // condition of its own, which kernels set: one in front of the part, and one in the part if it is kWhile.
  struct Launch {
    enum class Kind : uint8_t { kKernel, kIf, kWhile, kEnd };
    Kind kind = Kind::kKernel;
    uint64_t condition = 0;  // kIf and kWhile: its number, counted from 0 in the graph
    // The following belong to kernels. The arguments begin with the numbers of the conditions that the kernel sets, one
    // uint64_t for each; the kernel gets the driver's handles in their place.
    Function function = nullptr;
    Geometry geometry{};
    const void* arguments = nullptr;
    size_t bytes = 0;
    uint32_t set_conditions = 0;  // how many
  };
  using Graph = struct GraphTag*;
  virtual bool makes_graphs() const = 0;
  virtual bool makes_conditions() const = 0;                                    // whether graphs may have parts
  virtual Graph make_graph(std::span<const Launch> launches) = 0;               // at least one
  virtual void set_node(Graph graph, size_t number, const Launch& launch) = 0;  // with the same function
  virtual void launch(Graph graph, Stream stream) = 0;
  virtual void free_graph(Graph graph) noexcept = 0;

  // Kernels of users. compile() throws ValueError for text that does not compile.
  virtual UserImage compile(const UserSource& source, std::string_view architecture) = 0;
  virtual Function find_function(Module module, const char* entry) = 0;  // null: the module has none of that name
  // The sizes of a kernel's parameters; nullopt if the driver does not report them.
  virtual std::optional<std::vector<size_t>> parameter_bytes(Function function) = 0;
  // parameters: an address of the value of each, which is copied. shared_bytes: dynamic shared memory of a block.
  virtual void launch(Function function, const Geometry& geometry, uint32_t shared_bytes, Stream stream,
                      std::span<void* const> parameters) = 0;
};

// The process' backend, made at the first call, which may take a while; null if there is none, and then why_none() says
// the reason. Runtime sets the function that makes it.
Backend* backend();
const std::string& why_none();
using MakeBackend = std::unique_ptr<Backend> (*)(std::string* why_none);
void set_backend_maker(MakeBackend make);

// A header that kernels may include: its name as in "#include" and its text. The build embeds src/kernels/device,
// src/kernels/functors and the other headers that they include.
struct HeaderText {
  const char* name;
  std::string_view text;
};
const std::vector<HeaderText>& kernel_headers();

}  // namespace hybridnet::device
