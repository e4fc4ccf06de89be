// Products of matrices by a library of the device, where one is installed.
// Threads: any. The product is in the order of the stream.
// Throws:  EngineError of the library, OutOfMemoryError for its workspace.
#pragma once

#include <cstdint>
#include <memory>

#include "device/library_call.h"
#include "device/product_call.h"

namespace hybridnet::device {

// A Backend whose devices have such a library implements this, too. Members use the device that the thread made
// current.
class ProductLibrary {
 public:
  // Null: the library does not compute this.
  virtual std::shared_ptr<const LibraryPlan> plan(const ProductCall& call) = 0;
  virtual void multiply(const LibraryPlan& plan, const ProductCall& call, void* workspace, Backend::Stream stream) = 0;

 protected:
  ~ProductLibrary() = default;
};

// Pushes the product to current(). own_steps: the steps that our own kernel needs for it, which decide whether a
// library pays. False: no library computes this product, and nothing was pushed.
bool library_product(ProductCall call, int64_t own_steps);

}  // namespace hybridnet::device
