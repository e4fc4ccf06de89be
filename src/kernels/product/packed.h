// Weights in the order in which a kernel reads them, kept beside their source array.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/kernel.h"
#include "hybridnet/storage.h"

namespace hybridnet::kernels {

// A kernel that reads some inputs through copies in another order (PackedWeights), and makes a ReadLease whenever
// it reads the inputs themselves: their memory may be dropped while the copies are kept.
class ReadsPackedWeights {
 public:
  virtual bool reads_packed(size_t input) const = 0;

 protected:
  ~ReadsPackedWeights() = default;
};

// Restores weights, or a part of them, from their packed copy, with the same bits. It may outlive the kernel that
// packed them.
struct Unpacking {
  int64_t offset = 0, bytes = 0;  // within the weights
  std::function<void(const void* packed, void* part)> write;
};

class PackedWeights {
 public:
  // `layout` names the copy's layout and the way the weights are read. unpack: the parts that the copy can restore.
  PackedWeights(std::string layout, int64_t bytes, std::vector<Unpacking> unpack = {})
      : bytes_(bytes), unpack_(std::move(unpack)), user_("packed " + std::move(layout)) {}
  int64_t bytes() const { return bytes_; }

  using Use = DerivedUser<OwnedBlock>::Use;
  // pack(void* target): writes bytes() bytes.
  template <typename Pack>
  Use get(const TensorRef& weights, const Pack& pack) {
    const DerivedSource source{weights.data, weights.derived};
    return user_.get(weights.last_copy, {&source, 1}, bytes_, [&] {
      auto block = std::make_shared<OwnedBlock>(bytes_);
      pack(block->data());
      if (weights.derived) offer(weights, block);
      return block;
    });
  }

 private:
  void offer(const TensorRef& weights, const std::shared_ptr<const OwnedBlock>& packed) const {
    for (const Unpacking& part : unpack_)
      weights.derived->offer({static_cast<char*>(weights.data) + part.offset, part.bytes,
                              [packed, write = part.write](void* to) { write(packed->data(), to); }});
  }
  const int64_t bytes_;
  const std::vector<Unpacking> unpack_;
  DerivedUser<OwnedBlock> user_;
};

// The packed weights of one run: the kept ones, or, if `kept` is null, the ones that pack(void* target) writes into
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
  const void* data() const { return data_; }
  const float* floats() const { return static_cast<const float*>(data_); }

 private:
  PackedWeights::Use use_;
  const void* data_;
};

}  // namespace hybridnet::kernels
