// Connectionist temporal classification (Graves et al., 2006): the loss of one sequence, its gradient, and the product
// of its second derivatives with a direction.
#pragma once

#include <cstdint>
#include <span>

namespace hybridnet::kernels {

// Activations of one example: step t, symbol a at data[t * stride + a].
struct CtcSequence {
  std::span<const int64_t> label;  // symbols without padding, each in [0, symbols)
  int64_t steps = 0, symbols = 0, stride = 0, blank = 0;
};

// Loss -log p(label | softmax of data). Writes its gradient to the same places of `gradient` if that is not null. A
// label that needs more steps than there are has loss and gradient 0, as in MXNet.
template <typename T>
double ctc_loss(const CtcSequence& s, const T* data, T* gradient);

// product = (second derivatives of the loss) * direction.
template <typename T>
void ctc_second_product(const CtcSequence& s, const T* data, const T* direction, T* product);

}  // namespace hybridnet::kernels
