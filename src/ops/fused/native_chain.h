// Chains of elementwise operators as machine code: steps with a form in C become loops over a tile in which values stay
// in registers; the others are called between these loops, as the interpreter calls them. Results are the interpreter's
// to the bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/native_code.h"
#include "op/c_forms.h"
#include "op/pointwise_program.h"

namespace hybridnet::ops {

class NativeChain {
 public:
  // single: the inputs that are one element. Null: code would save no pass over a tile, or C has no such type.
  static std::unique_ptr<NativeChain> make(const PointwiseProgram& program, DType dtype,
                                           const std::vector<bool>& single);

  bool ready() const { return function_->get() != nullptr; }
  // Tiles that run() keeps values in.
  int buffers() const { return buffers_; }
  // A tile of n elements, if ready(). in: all inputs, with n elements also those that are single. out: all outputs.
  // buffers: memory for buffers() tiles that are `tile` elements long.
  void run(const void* const* in, void* const* out, void* buffers, int64_t tile, int64_t n) const;
  // The interpreter has made so many elements: enough of them, and the function is asked for.
  void note_elements(int64_t count);
  const std::string& source() const { return function_->source(); }

 private:
  friend class NativeChainWriter;
  std::shared_ptr<NativeFunction> function_;
  std::vector<c_forms::Call> calls_;
  std::vector<ParamsPtr> params_;  // keep those of calls_ alive
  int buffers_ = 0;
  int64_t steps_ = 0;
  std::atomic<int64_t> interpreted_{0};  // elements times steps
};

}  // namespace hybridnet::ops
