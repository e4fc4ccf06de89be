// Dense layers of bytes: convolutions of one position per row, computed as products with packed 8-bit weights.
#pragma once

#include <memory>

#include "kernels/conv/int8_convolution.h"

namespace hybridnet::kernels {

// True if each output position is the product of the channels of one input position, stored together, with all weights.
bool is_dense(const ConvGeometry& geometry);
// True if make_byte_dense() is preferred to oneDNN where both are exact: a dense layer of few rows, on a machine with
// AVX-512 VNNI.
bool byte_dense_pays(const ConvGeometry& geometry);
// The geometry must be dense.
std::unique_ptr<Int8Convolution> make_byte_dense(const ConvGeometry& geometry, const Int8ConvOptions& options);

}  // namespace hybridnet::kernels
