#include "ops/nn/softmax_params.h"

namespace hybridnet::ops {
namespace {

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M SoftmaxParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("axis", &SoftmaxParams::axis).default_value(-1).doc("Axis along which the outputs sum to 1.");
  field("temperature", &SoftmaxParams::temperature).none_by_default().doc("Divisor of data; None: 1.");
  field("dtype", &SoftmaxParams::dtype)
      .none_by_default()
      .doc("Dtype of the output: float16, float32 or float64; None: dtype of data.");
  field("use_length", &SoftmaxParams::use_length).default_value(false).doc("Whether the length input is present.");
}

void check(const SoftmaxParams& p) {
  if (p.temperature && !(*p.temperature > 0))
    throw ParamError(
        {.input = "temperature", .expected = "a positive number", .given = std::to_string(*p.temperature)});
  if (p.dtype && *p.dtype != DType::kFloat16 && *p.dtype != DType::kFloat32 && *p.dtype != DType::kFloat64)
    throw ParamError(
        {.input = "dtype", .expected = "None, float16, float32 or float64", .given = dtype_name(*p.dtype)});
}

}  // namespace

void SoftmaxParams::describe(ParamSchema<SoftmaxParams>& schema) {
  describe_fields(schema);
  schema.check(check);
}

void LogSoftmaxParams::describe(ParamSchema<LogSoftmaxParams>& schema) {
  describe_fields(schema);
  schema.check([](const LogSoftmaxParams& p) {
    check(p);
    if (p.use_length.value_or(false)) {
      throw ParamError({.input = "use_length",
                        .expected = "False",
                        .given = "True",
                        .because = "this operator has no length input",
                        .fix = "use softmax with use_length, or SequenceMask on the result"});
    }
  });
}

}  // namespace hybridnet::ops
