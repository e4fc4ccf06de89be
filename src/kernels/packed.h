// Weights in the order in which a kernel reads them, kept beside the array that they come from.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "hybridnet/op.h"
#include "hybridnet/storage.h"

namespace hybridnet::kernels {

// A kernel that reads some inputs by copies in another order (PackedWeights), and makes a SourceReading where it reads
// them as they are: so their memory may be dropped while the copies are kept.
class ReadsPackedWeights {
 public:
  virtual bool reads_packed(size_t input) const = 0;

 protected:
  ~ReadsPackedWeights() = default;
};

class PackedWeights {
 public:
  // `layout` names the copy's layout, and how the weights are read.
  PackedWeights(std::string layout, int64_t bytes) : bytes_(bytes), user_("packed " + std::move(layout)) {}
  int64_t bytes() const { return bytes_; }

  using Use = DerivedUser<OwnedBlock>::Use;
  // pack(void* target): writes bytes() bytes.
  template <typename Pack>
  Use get(const TensorRef& weights, const Pack& pack) {
    const DerivedSource source{weights.data, weights.derived};
    return user_.get(weights.last_copy, {&source, 1}, bytes_, [&] {
      auto block = std::make_shared<OwnedBlock>(bytes_);
      pack(block->data());
      return block;
    });
  }

 private:
  const int64_t bytes_;
  DerivedUser<OwnedBlock> user_;
};

// The packed weights of one run: those that are kept, or, where none are, what pack(void* target) writes into
// `workspace`.
class PackedForRun {
 public:
  template <typename Pack>
  PackedForRun(PackedWeights* kept, const TensorRef& weights, void* workspace, const Pack& pack) : data_(workspace) {
    if (kept) {
      use_ = kept->get(weights, pack);
      data_ = use_->data();
    } else {
      pack(workspace);
    }
  }
  const float* floats() const { return static_cast<const float*>(data_); }

 private:
  PackedWeights::Use use_;
  const void* data_;
};

}  // namespace hybridnet::kernels
