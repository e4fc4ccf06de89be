// Connectionist temporal classification (Graves et al., 2006): the loss of one sequence, its gradient, and the product
// of its second derivatives with a direction.
#pragma once

#include <cstdint>
#include <span>

namespace hybridnet::kernels {

// The activations of one example: step t, symbol a at data[t * stride + a].
struct CtcSequence {
  std::span<const int64_t> label;  // symbols without padding, each in [0, symbols)
  int64_t steps = 0, symbols = 0, stride = 0, blank = 0;
};

// Returns the loss -log p(label | softmax of data). Unless `gradient` is null, writes the gradient there, with the
// strides of `data`. If a label needs more steps than there are, loss and gradient are 0, like MXNet's.
template <typename T>
double ctc_loss(const CtcSequence& s, const T* data, T* gradient);

// product = (second derivatives of the loss) * direction.
template <typename T>
void ctc_second_product(const CtcSequence& s, const T* data, const T* direction, T* product);

}  // namespace hybridnet::kernels
