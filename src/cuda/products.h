// Products of matrices by cuBLASLt: one handle for each device, and the plans of the layouts that were used last.
// Owner:   a Products belongs to its backend; the library stays loaded until the process ends.
// Threads: any. Members use the device that the thread made current, which `device` names.
// Throws:  EngineError with the failed function, its status and the sizes of the product.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/cublas_lt.h"
#include "cuda/plan_cache.h"
#include "device/product_call.h"

namespace hybridnet::cuda {

std::string text_of(const device::ProductCall& call);  // "float32 product (64, 784) x (128, 784) transposed"

class Products {
 public:
  using Plan = device::LibraryPlan;

  // Loads the first of these files that is a cuBLASLt; null, and the reason, if there is none.
  static std::unique_ptr<Products> load(const std::vector<std::string>& files, std::string* why_none);
  Products(const Products&) = delete;

  const std::string& file() const { return file_; }
  std::string version() const;  // "13.10.0"

  // Null: cuBLASLt does not compute this product, or has no algorithm for it.
  std::shared_ptr<const Plan> plan(const device::ProductCall& call, int device);
  void run(const Plan& plan, const device::ProductCall& call, void* workspace, StreamHandle stream) const;
  void release(int device) noexcept;  // the device's handle; its plans are not used afterwards

 private:
  class MatmulPlan;
  using OfDevice = DeviceHandle<CublasLt::Handle>;
  using Plans = PlanCache<CublasLt::Handle, 18>;

  Products() = default;

  CublasLt library_;
  std::string file_;
  Plans plans_;
};

}  // namespace hybridnet::cuda
