// Weights in the order in which a kernel reads them, kept beside the array that they come from.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "hybridnet/op.h"
#include "hybridnet/storage.h"

namespace hybridnet::kernels {

class PackedWeights {
 public:
  // `layout` names the copy's layout, and how the weights are read.
  PackedWeights(std::string layout, int64_t bytes) : bytes_(bytes), user_("packed " + std::move(layout)) {}
  int64_t bytes() const { return bytes_; }

  // pack(void* target): writes bytes() bytes.
  template <typename Pack>
  std::shared_ptr<const OwnedBlock> get(const TensorRef& weights, const Pack& pack) {
    const DerivedSource source{weights.data, weights.derived};
    return user_.get({&source, 1}, bytes_, [&] {
      auto block = std::make_shared<OwnedBlock>(bytes_);
      pack(block->data());
      return block;
    });
  }

 private:
  const int64_t bytes_;
  DerivedUser<OwnedBlock> user_;
};

}  // namespace hybridnet::kernels
