// Products of matrices by cuBLASLt: one handle for each device, and the plans of the layouts that were used last.
// Owner:   a Products belongs to its backend; the library stays loaded until the process ends.
// Threads: any. Members use the device that the thread made current, which `device` names.
// Throws:  EngineError with the failed function, its status and the sizes of the product.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda/cublas_lt.h"
#include "device/library_product.h"

namespace hybridnet::cuda {

std::string text_of(const device::ProductCall& call);  // "float32 product (64, 784) x (128, 784) transposed"

class Products {
 public:
  using Plan = device::ProductLibrary::Plan;
  // Plans that are kept, of all devices together: more than the layouts of a large network, a few hundred bytes each.
  static constexpr size_t kMostPlans = 1024;

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
  // A handle, which one thread at a time uses: pushing a product takes microseconds.
  struct OfDevice {
    CublasLt::Handle handle = nullptr;
    std::mutex mutex;
  };
  // The properties on which a plan depends, a number each.
  struct Key {
    int64_t values[18];
    bool operator==(const Key&) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key& key) const;
  };
  using Known = std::list<std::pair<Key, std::shared_ptr<const Plan>>>;

  Products() = default;
  static Key key_of(const device::ProductCall& call, int device);
  std::shared_ptr<const Plan> make(const device::ProductCall& call, int device);
  OfDevice& of_device(int device, const device::ProductCall& call);

  CublasLt library_;
  std::string file_;
  std::mutex mutex_;  // guards the members below
  std::map<int, OfDevice> devices_;
  Known plans_;  // the last used first
  std::unordered_map<Key, Known::iterator, HashOfKey> places_;
};

}  // namespace hybridnet::cuda
