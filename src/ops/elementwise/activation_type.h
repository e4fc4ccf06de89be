// The parameter act_type of Activation and of its form for bytes.
#pragma once

#include "hybridnet/params.h"
#include "kernels/elementwise/activation_kind.h"

namespace hybridnet::ops {

template <typename P>
FieldBuilder describe_act_type(ParamSchema<P>& schema) {
  using kernels::ActivationKind;
  FieldBuilder field = schema.field("act_type", &P::act_type);
  field.choice("relu", ActivationKind::kRelu)
      .choice("sigmoid", ActivationKind::kSigmoid)
      .choice("softrelu", ActivationKind::kSoftRelu)
      .choice("softsign", ActivationKind::kSoftSign)
      .choice("tanh", ActivationKind::kTanh);
  return field;
}

}  // namespace hybridnet::ops
