// Convolutions of int8 data: products of signed or unsigned bytes with signed ones, summed in 32 bits. The sums are
// exact for every instruction set, as long as they fit into 32 bits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/conv/conv_geometry.h"
#include "kernels/dnnl/post_ops.h"
#include "kernels/product/packed.h"

namespace hybridnet::kernels {

// The stored result of each sum. `out` kInt32: the sum itself, with `bias` (integers) added. Otherwise
//   t = activation(sum * scale[o] + bias[o]) + addend;   y = round(last_activation(t) / out_step), saturated
// or t itself for kFloat32.
struct Int8ConvOptions {
  DType data = DType::kInt8, out = DType::kInt32;
  bool bias = false, add = false;
  DType addend = DType::kInt8;  // bytes, of the same dtype as `out` if that is not kInt32
  onednn::Activation activation = {}, last_activation = {};
};

struct Int8ConvTensors {
  const void* x = nullptr;
  const void* weights = nullptr;  // from pack()
  const float* scale = nullptr;   // (o,); unused for kInt32
  const void* bias = nullptr;     // (o,): int32_t for kInt32, else float
  const void* addend = nullptr;   // may alias y
  float out_step = 1.0f;
  void* y = nullptr;
  void* workspace = nullptr;
};

class Int8Convolution {
 public:
  virtual ~Int8Convolution() = default;
  virtual int64_t packed_bytes() const = 0;
  virtual std::string packing() const = 0;  // names the layout: equal names mean equal bytes
  // From plain weights (o, c / groups, kernel...), or with the channels last if the geometry says so.
  virtual void pack(const int8_t* plain, void* packed) const = 0;
  virtual std::vector<Unpacking> unpack() const { return {}; }  // the parts that the packed weights can restore
  virtual int64_t workspace_bytes() const = 0;
  virtual std::string description() const = 0;
  virtual void run(const Int8ConvTensors& t) const = 0;  // safe from several threads at once
};

// Dense layers use 8-bit weights and kernels/product/byte_product.h, except for many rows where oneDNN is exact. Other
// convolutions use oneDNN if the machine has instructions that sum bytes without saturation in 16 bits (VNNI, AMX),
// else 16-bit products.
std::unique_ptr<Int8Convolution> make_int8_convolution(const ConvGeometry& geometry, const Int8ConvOptions& options);

}  // namespace hybridnet::kernels
