// Code shared by the targets: handles that free themselves, and a model that is run forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/c_api.h"

namespace fuzz {

// Targets make no larger arrays; operations on larger ones are slow, not wrong.
inline constexpr int64_t kMaxElements = 1 << 14;

template <typename Handle, int (*Free)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { Free(handle_); }
  Handle get() const { return handle_; }
  Handle* out() { return &handle_; }

 private:
  Handle handle_ = nullptr;
};
using Array = Owned<HnArray, hn_array_free>;
using Model = Owned<HnModel, hn_model_free>;
using Op = Owned<HnOp, hn_op_free>;
using Session = Owned<HnSession, hn_session_free>;
using Trainer = Owned<HnTrainer, hn_trainer_free>;
using Batcher = Owned<HnBatcher, hn_batcher_free>;

// Pseudo-random numbers that depend on the input alone, without consuming bytes from it: files stay whole.
class Draws {
 public:
  Draws(const uint8_t* data, size_t size);
  uint64_t next();
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

// An array of small values; null if it would be too large, or its shape is invalid.
Array make_array(const HnTensorSpec& spec, Draws& draws);

// Binds arrays of sizes that the graph allows, runs the model forward and backward in training, updates its parameters,
// predicts by a call, a session and a batch, and calls all functions that query it. Errors are valid results.
void use(HnModel model, Draws& draws);

}  // namespace fuzz
