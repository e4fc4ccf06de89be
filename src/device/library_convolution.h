// Convolutions and their gradients by a library of the device, where one is installed.
// Threads: any. The convolution is in the order of the stream.
// Throws:  EngineError of the library, OutOfMemoryError for its workspace.
#pragma once

#include <cstdint>
#include <memory>

#include "device/convolution_call.h"
#include "device/library_call.h"

namespace hybridnet::device {

// A Backend whose devices have such a library implements this, too. Members use the device that the thread made
// current.
class ConvolutionLibrary {
 public:
  // Null: the library does not compute this.
  virtual std::shared_ptr<const LibraryPlan> plan(const ConvolutionCall& call) = 0;
  virtual void convolve(const LibraryPlan& plan, const ConvolutionCall& call, void* workspace,
                        Backend::Stream stream) = 0;

 protected:
  ~ConvolutionLibrary() = default;
};

// Pushes the convolution to current(). own_steps: the steps that our own kernel needs for it, which decide whether a
// library pays. False: no library computes it, and nothing was pushed.
bool library_convolution(ConvolutionCall call, int64_t own_steps);

}  // namespace hybridnet::device
