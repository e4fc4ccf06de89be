// The specs of kernel arguments as text for profiles.
#pragma once

#include <span>
#include <string>

#include "hybridnet/op.h"

namespace hybridnet {

// "float32(2, 3), int64(4,)".
inline std::string specs_text(std::span<const TensorRef> tensors) {
  std::string text;
  for (const TensorRef& tensor : tensors) {
    if (!text.empty()) text += ", ";
    text += tensor.shape ? TensorSpec{*tensor.shape, tensor.dtype}.str() : "none";
  }
  return text;
}

}  // namespace hybridnet
