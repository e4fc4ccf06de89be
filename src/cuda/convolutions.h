// Convolutions and their gradients by cuDNN: one handle for each device, and the plans of the layouts that were used
// last.
// Owner:   a Convolutions belongs to its backend; the library stays loaded until the process ends.
// Threads: any. Members use the device that the thread made current, which `device` names.
// Throws:  EngineError with the failed function, its status and the sizes of the convolution.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cudnn.h"
#include "cuda/plan_cache.h"
#include "device/convolution_call.h"

namespace hybridnet::cuda {

// "float32 convolution of (8, 64, 56, 56) by (64, 64, 3, 3), stride (1, 1), pad (1, 1), dilate (1, 1), 1 group"
std::string text_of(const device::ConvolutionCall& call);

// The memory that cuDNN may use beside its tensors. A constant, so that the choice of an engine, and with it the bits
// of a convolution, do not depend on the memory that is left. Engines that copy an image to columns need much more, and
// are slower than others; engines that divide a sum into parts, or change the order of axes, need some MiB.
inline constexpr int64_t kMostConvolutionWorkspace = int64_t{256} << 20;

class Convolutions {
 public:
  using Plan = device::LibraryPlan;

  // Waits for a stream. A plan may own the code of its kernels, so that it is dropped when these are done.
  using Wait = std::function<void(StreamHandle)>;

  // Loads the first of these files that is a cuDNN, if a driver of this version (1000 * major + 10 * minor) runs it;
  // null, and the reason, if there is none.
  static std::unique_ptr<Convolutions> load(const std::vector<std::string>& files, int driver_version, Wait wait,
                                            std::string* why_none);
  Convolutions(const Convolutions&) = delete;

  const std::string& file() const { return file_; }
  std::string version() const;  // "9.28.1"
  int cuda_version() const;     // 13: of the CUDA for which it was built

  // Null: cuDNN does not compute this convolution, or has no engine for it.
  std::shared_ptr<const Plan> plan(const device::ConvolutionCall& call, int device);
  void run(const Plan& plan, const device::ConvolutionCall& call, void* workspace, StreamHandle stream) const;
  void release(int device) noexcept;  // the device's handle; its plans are not used afterwards

 private:
  class GraphPlan;
  using OfDevice = DeviceHandle<Cudnn::Handle>;
  using Plans = PlanCache<Cudnn::Handle, 32>;

  explicit Convolutions(Wait wait) : wait_(std::move(wait)) {}

  const Wait wait_;
  Cudnn library_;
  std::string file_;
  Plans plans_;
};

}  // namespace hybridnet::cuda
