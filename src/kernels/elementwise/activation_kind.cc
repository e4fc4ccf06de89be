#include "kernels/elementwise/activation_kind.h"

namespace hybridnet::kernels {

const SpanLoops& loops_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone:
      break;
    case ActivationKind::kRelu:
      return loops(Pointwise::kRelu);
    case ActivationKind::kSigmoid:
      return loops(Pointwise::kSigmoid);
    case ActivationKind::kTanh:
      return loops(Pointwise::kTanh);
    case ActivationKind::kSoftRelu:
      return loops(Pointwise::kSoftrelu);
    case ActivationKind::kSoftSign:
      return loops(Pointwise::kSoftsign);
    case ActivationKind::kGelu:
      return loops(Pointwise::kGelu);
    case ActivationKind::kGeluTanh:
      return loops(Pointwise::kGeluTanh);
    case ActivationKind::kSilu:
      return loops(Pointwise::kSilu);
    case ActivationKind::kClip:
      return loops(Pointwise::kClip);
    case ActivationKind::kElu:
      return loops(Pointwise::kElu);
    case ActivationKind::kLeaky:
      return loops(Pointwise::kLeaky);
  }
  return loops(Pointwise::kCopy);
}

}  // namespace hybridnet::kernels
