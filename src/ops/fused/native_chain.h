// Chains of elementwise operators as machine code. Steps with a form in C become loops over a tile whose values stay in
// registers; the other steps are called between these loops, as in the interpreter. Results are bit-equal to the
// interpreter's.
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
  // single: marks the inputs with one element. Returns null if code would save no pass over a tile, or if C has no such
  // type.
  static std::unique_ptr<NativeChain> make(const PointwiseProgram& program, DType dtype,
                                           const std::vector<bool>& single);

  bool ready() const { return function_->get() != nullptr; }
  // The number of tiles that run() needs as buffers.
  int buffers() const { return buffers_; }
  // Computes a tile of n elements; requires ready(). in: all inputs, each with n elements, single ones too. out: all
  // outputs. buffers: memory for buffers() tiles that are `tile` elements long.
  void run(const void* const* in, void* const* out, void* buffers, int64_t tile, int64_t n) const;
  // Adds to the number of elements that the interpreter has computed; once there are enough, requests the compilation.
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
