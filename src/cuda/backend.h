// Backend over the CUDA driver. It uses the primary context of each device, which other CUDA libraries of the process
// (CuPy, PyTorch) use, too.
// Owner:   the caller of make_cuda_backend(). The destructor releases all that the backend made, unless the process is
//          ending or was forked: then the driver must not be called.
// Threads: any. Members that need a current device take device 0 on a thread that made none current.
// Throws:  DeviceError (EngineError); in a child that was forked after the driver's start every member that calls it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/convolutions.h"
#include "cuda/device_memory.h"
#include "cuda/driver.h"
#include "cuda/driver_graph.h"
#include "cuda/image_cache.h"
#include "cuda/nvrtc.h"
#include "cuda/products.h"
#include "cuda/staging.h"
#include "device/backend.h"
#include "device/library_convolution.h"
#include "device/library_product.h"
#include "device/pinned.h"

namespace hybridnet::cuda {

struct BackendOptions {
  std::string driver;           // HYBRIDNET_CUDA_DRIVER
  std::string library_folders;  // HYBRIDNET_CUDA_PATH
  std::string image_folder;     // compiled kernels; empty: none are kept
  bool synchronous = false;     // HYBRIDNET_CUDA_SYNC: launch() waits for the kernel
  bool graphs = true;           // HYBRIDNET_CUDA_GRAPHS
  bool cublas_lt = true;        // HYBRIDNET_CUDA_LIBRARIES
  bool cudnn = true;            // the same
};

class CudaBackend final : public device::Backend,
                          public device::ProductLibrary,
                          public device::ConvolutionLibrary,
                          public device::PinnedMemory {
 public:
  // driver: initialized, with this number of devices.
  CudaBackend(std::unique_ptr<const Driver> driver, int num_devices, BackendOptions options);
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;

  int num_devices() const override { return static_cast<int>(devices_.size()); }
  device::DeviceInfo info(int device) const override;
  std::vector<std::pair<std::string, std::string>> libraries() override;
  void make_current(int device) override;

  void* allocate(int64_t bytes) override;
  void free(void* memory) override;
  std::pair<int64_t, int64_t> free_and_total_bytes(int device) override;
  void* allocate_pinned(int64_t bytes) override;
  void free_pinned(void* memory) override;
  void copy_in_pinned(Stream stream, void* to, const void* from, int64_t bytes) override;

  Stream make_stream() override;
  Event make_event() override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  bool is_done(Event event) override;
  void synchronize(Event event) override;
  void synchronize(Stream stream) override;

  void copy_in(Stream stream, void* to, const void* from_host, int64_t bytes) override;
  void copy_out(Stream stream, void* to_host, const void* from, int64_t bytes) override;
  void copy(Stream stream, void* to, const void* from, int64_t bytes) override;
  void fill_bytes(Stream stream, void* to, uint8_t value, int64_t bytes) override;

  std::string compile(std::string_view text, std::string_view architecture, device::ImageKind kind) override;
  Module load(std::string_view image) override;
  Function function(Module module, const char* entry) override;
  void launch(Function function, const device::Geometry& geometry, Stream stream, const void* arguments,
              size_t bytes) override;

  bool makes_graphs() const override;
  bool makes_conditions() const override { return has_conditions_ && makes_graphs(); }
  Graph make_graph(std::span<const Launch> launches) override;
  void set_node(Graph graph, size_t number, const Launch& launch) override;
  void launch(Graph graph, Stream stream) override;
  void free_graph(Graph graph) noexcept override;

  std::shared_ptr<const device::LibraryPlan> plan(const device::ProductCall& call) override;
  void multiply(const device::LibraryPlan& plan, const device::ProductCall& call, void* workspace,
                Stream stream) override;
  std::shared_ptr<const device::LibraryPlan> plan(const device::ConvolutionCall& call) override;
  void convolve(const device::LibraryPlan& plan, const device::ConvolutionCall& call, void* workspace,
                Stream stream) override;

  device::UserImage compile(const device::UserSource& source, std::string_view architecture) override;
  Function find_function(Module module, const char* entry) override;
  std::optional<std::vector<size_t>> parameter_bytes(Function function) override;
  void launch(Function function, const device::Geometry& geometry, uint32_t shared_bytes, Stream stream,
              std::span<void* const> parameters) override;

 private:
  struct Device {
    DeviceNumber number = 0;
    device::DeviceInfo info;
    Context context = nullptr;  // the primary context; made when the device is first made current
    std::unique_ptr<Staging> staging;
    std::unique_ptr<DeviceMemory> memory;
  };

  device::DeviceInfo describe(DeviceNumber number) const;
  void enter() const;  // throws after a fork
  void use_some_device();
  Context context_of(int device);
  std::vector<std::string> compiler_files() const;
  const Compiler& compiler();
  const std::string& source_key();
  [[noreturn]] void throw_launch_failure(Result result, const char* failed, Function function,
                                         const device::Geometry& geometry);
  Result wait_unless_recording(StreamHandle stream);
  Products* products();
  Convolutions* convolutions();
  bool has_libraries_for(const Convolutions& found);
  std::string about_products();
  std::string about_convolutions();
  template <class Library, class Call>
  void run(const Library& library, const device::LibraryPlan& plan, const Call& call, void* workspace, Stream stream);
  int driver_version() const;
  int current_device() const;         // this thread's; after use_some_device()
  void finish(int device) noexcept;   // waits for its streams
  void release(int device) noexcept;  // after finish()

  void free_graphs_of(int device) noexcept;

  const std::unique_ptr<const Driver> driver_;
  const BackendOptions options_;
  const uint64_t id_;  // tells backends of one process apart, also after one was destroyed
  const ImageCache images_;
  const bool has_conditions_;  // the driver makes graphs with conditional nodes
  std::vector<Device> devices_;

  std::mutex compiler_mutex_;  // guards the next member; loading a compiler must not stop launches
  std::unique_ptr<Compiler> compiler_;
  std::once_flag products_once_;
  std::unique_ptr<Products> products_;  // null: there is no cuBLASLt, and the next member says why
  std::string why_no_products_;
  std::once_flag convolutions_once_;
  std::unique_ptr<Convolutions> convolutions_;  // null: there is no cuDNN, and the next member says why
  std::string why_no_convolutions_;
  std::once_flag source_key_once_;
  std::string source_key_;
  std::mutex mutex_;                                   // guards the members below, and the contexts
  std::vector<std::pair<int, StreamHandle>> streams_;  // with their devices
  std::vector<std::pair<int, EventHandle>> events_;
  std::vector<std::pair<int, ModuleHandle>> modules_;
  std::unordered_map<Pointer, int> blocks_;
  std::set<void*> pinned_;
  std::map<Graph, std::unique_ptr<DriverGraph>> graphs_;
  std::unordered_map<const void*, std::string> names_;  // names of functions
};

// The backend of the environment's driver; null, and the reason, if the process can use no GPU.
std::unique_ptr<device::Backend> make_cuda_backend(std::string* why_none);
std::unique_ptr<device::Backend> make_cuda_backend(const BackendOptions& options, std::string* why_none);
// The same for a loaded driver, which this initializes.
std::unique_ptr<device::Backend> make_cuda_backend(std::unique_ptr<const Driver> driver, const BackendOptions& options,
                                                   std::string* why_none);

}  // namespace hybridnet::cuda
