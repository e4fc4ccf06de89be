// _zeros, _ones, _full: constant tensors.
#include "kernels/memory/fill.h"

#include "hybridnet/declare.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

struct ConstantParams {
  Tuple shape;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<ConstantParams>& schema) {
    schema.field("shape", &ConstantParams::shape).default_value(AttrValue(Tuple::scalar())).doc("Shape of the output.");
    describe_ctx<ConstantParams>(schema);
    schema.field("dtype", &ConstantParams::dtype).default_value("float32").doc("Dtype of the output.");
  }
};

struct FullParams {
  Tuple shape;
  std::string ctx;
  DType dtype;
  double value;
  static void describe(ParamSchema<FullParams>& schema) {
    schema.field("shape", &FullParams::shape).doc("Shape of the output.");
    describe_ctx<FullParams>(schema);
    schema.field("dtype", &FullParams::dtype).default_value("float32").doc("Dtype of the output.");
    schema.field("value", &FullParams::value).doc("Value of every element.");
  }
};

struct ZerosOfContextParams {
  Tuple shape;
  std::string ctx;
  int32_t dtype;
  static void describe(ParamSchema<ZerosOfContextParams>& schema) {
    schema.field("shape", &ZerosOfContextParams::shape).doc("Shape of the output.");
    describe_ctx<ZerosOfContextParams>(schema);
    schema.field("dtype", &ZerosOfContextParams::dtype)
        .default_value(-1)
        .doc("Code of the dtype; -1: the dtype by the use of the output, else float32.");
    schema.check([](const ZerosOfContextParams& p) {
      if (p.dtype != -1 && !dtype_valid_code(p.dtype))
        throw ParamError({.input = "dtype", .expected = "-1 or the code of a dtype", .given = std::to_string(p.dtype)});
    });
  }
};

// An empty shape is a scalar under NumPy shape semantics; else the shape is unknown.
void infer_constant_shape(const Tuple& shape, InferContext& c) {
  if (shape.ndim() > 0 || is_np_shape())
    set_out_from_shape_param(c, 0, shape);
  else if (!c.out_shape(0).rank_known())
    c.set_out_shape(0, shape);
}

// NumPy's shapes are taken literally, independent of the thread's shape semantics.
void infer_literal_constant(const ConstantParams& p, InferContext& c) {
  for (const int64_t size : p.shape)
    if (size < 0)
      throw ParamError({.input = "shape", .expected = "sizes that are not negative", .given = p.shape.str()});
  c.set_out_shape(0, p.shape);
  c.set_out_dtype(0, p.dtype);
}

}  // namespace

void register_fill(OpRegistry& ops) {
  auto declare_constant = [&](const char* name, const char* doc, double value) {
    ops.declare<ConstantParams>(name)
        .doc(doc)
        .output("output", "shape and dtype given by the parameters")
        .infer([](const ConstantParams& p, InferContext& c) {
          infer_constant_shape(p.shape, c);
          c.set_out_dtype(0, p.dtype);
        })
        .any_device()
        .cpu([value](const ConstantParams&, const KernelArgs& a) { kernels::fill(a.out[0], value); })
        .fills_with([value](const ConstantParams&) { return std::optional(value); })
        .gradient(kNotDifferentiable)
        .sample({}, {{"shape", "(2, 3)"}})
        .sample({}, {{"shape", "(4,)"}, {"dtype", "int32"}});
  };
  declare_constant("_zeros", "A tensor of zeros.", 0.0);
  declare_constant("_ones", "A tensor of ones.", 1.0);
  auto declare_numpy_constant = [&](const char* name, const char* doc, double value) {
    ops.declare<ConstantParams>(name)
        .doc(doc)
        .output("output",
                "shape and dtype given by the parameters; () is a scalar, a size of 0 an axis without elements")
        .infer(infer_literal_constant)
        .any_device()
        .cpu([value](const ConstantParams&, const KernelArgs& a) { kernels::fill(a.out[0], value); })
        .fills_with([value](const ConstantParams&) { return std::optional(value); })
        .gradient(kNotDifferentiable)
        .sample({}, {{"shape", "(2, 3)"}})
        .sample({}, {{"shape", "(0, 3)"}})
        .sample({}, {{"shape", "()"}, {"dtype", "int32"}});
  };
  declare_numpy_constant("_npi_zeros", "An array of zeros.", 0.0);
  declare_numpy_constant("_npi_ones", "An array of ones.", 1.0);
  ops.declare<FullParams>("_full")
      .alias("_npi_full")
      .doc("A tensor of one value.")
      .output("output", "shape and dtype given by the parameters")
      .infer([](const FullParams& p, InferContext& c) {
        infer_constant_shape(p.shape, c);
        c.set_out_dtype(0, p.dtype);
      })
      .any_device()
      .cpu([](const FullParams& p, const KernelArgs& a) { kernels::fill(a.out[0], p.value); })
      .fills_with([](const FullParams& p) { return std::optional<double>(p.value); })
      .gradient(kNotDifferentiable)
      .sample({}, {{"shape", "(2, 3)"}, {"value", "1.5"}})
      .sample({}, {{"shape", "(2,)"}, {"value", "-3"}, {"dtype", "int8"}});
  ops.declare<ZerosOfContextParams>("_zeros_without_dtype")
      .doc("A tensor of zeros whose dtype may be inferred from its use.")
      .output("output", "shape and dtype given by the parameters")
      .infer([](const ZerosOfContextParams& p, InferContext& c) {
        infer_constant_shape(p.shape, c);
        if (p.dtype >= 0) c.set_out_dtype(0, static_cast<DType>(p.dtype));
        if (c.out_dtype(0) == DType::kUnknown) c.set_out_dtype(0, DType::kFloat32);
      })
      .any_device()
      .cpu([](const ZerosOfContextParams&, const KernelArgs& a) { kernels::fill(a.out[0], 0.0); })
      .fills_with([](const ZerosOfContextParams&) { return std::optional(0.0); })
      .gradient(kNotDifferentiable)
      .sample({}, {{"shape", "(2, 3)"}});
}

}  // namespace hybridnet::ops
