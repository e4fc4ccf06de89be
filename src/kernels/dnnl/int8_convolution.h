// Convolutions of int8 data through oneDNN.
#pragma once

#include <memory>

#include "kernels/conv/int8_convolution.h"
#include "kernels/dnnl/program.h"

namespace hybridnet::onednn {

// Returns null if oneDNN has no implementation that satisfies the contract of kernels::Int8Convolution on this machine.
std::unique_ptr<kernels::Int8Convolution> make_int8_convolution(const kernels::ConvGeometry& geometry,
                                                                const kernels::Int8ConvOptions& options);

}  // namespace hybridnet::onednn
