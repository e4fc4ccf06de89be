// Products of matrices by a library of the device, where one is installed.
// Threads: any. The product is in the order of the stream.
// Throws:  EngineError of the library, OutOfMemoryError for its workspace.
#pragma once

#include <cstdint>
#include <memory>

#include "device/backend.h"
#include "device/product_call.h"

namespace hybridnet::device {

// A Backend whose devices have such a library implements this, too. Members use the device that the thread made
// current.
class ProductLibrary {
 public:
  // The state that the library prepares once for the layout of a product.
  struct Plan {
    virtual ~Plan() = default;
    int64_t workspace_bytes = 0;  // memory of the device that the product needs while it runs
  };
  virtual std::shared_ptr<const Plan> plan(const ProductCall& call) = 0;  // null: the library does not compute this
  virtual void multiply(const Plan& plan, const ProductCall& call, void* workspace, Backend::Stream stream) = 0;

 protected:
  ~ProductLibrary() = default;
};

// Pushes the product to current(), after the launches that this thread has collected: a library's work cannot be part
// of their graph. own_steps: the steps that our own kernel needs for it, which decide whether a library pays. False: no
// library computes this product, and nothing was pushed.
bool library_product(ProductCall call, int64_t own_steps);

// The least own_steps of products that go to a library. For tests and measurements; returns the number before.
int64_t set_least_library_steps(int64_t steps);

// Whether products of float32 may round their factors to 10 bits and more (TF32); a setting of the process, false at
// first. Counts for products that are pushed afterwards. Returns the setting before.
bool allow_reduced_float32(bool allow);

}  // namespace hybridnet::device
