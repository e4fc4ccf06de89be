// _random_randint: uniformly distributed integers in a range.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "kernels/functors/samplers.h"
#include "ops/device_launch.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

constexpr double kElementNs = 5;

struct RandintParams {
  int64_t low, high;
  std::optional<Tuple> shape;
  std::string ctx;
  std::optional<DType> dtype;
  static void describe(ParamSchema<RandintParams>& schema) {
    schema.field("low", &RandintParams::low).doc("Smallest number.");
    schema.field("high", &RandintParams::high).doc("One above the largest number.");
    schema.field("shape", &RandintParams::shape)
        .none_by_default()
        .doc("Shape of the output; None: the shape of out, else one number.");
    describe_ctx<RandintParams>(schema);
    schema.field("dtype", &RandintParams::dtype).none_by_default().doc("int32 or int64; None: int32.");
    schema.check([](const RandintParams& p) {
      if (p.low >= p.high) {
        throw ParamError({.input = "high",
                          .expected = "a number above low, " + std::to_string(p.low),
                          .given = std::to_string(p.high)});
      }
    });
  }
};

void infer_randint(const RandintParams& p, InferContext& c) {
  if (p.dtype && *p.dtype != DType::kUnknown) {
    if (*p.dtype != DType::kInt32 && *p.dtype != DType::kInt64)
      throw ParamError({.input = "dtype", .expected = "int32 or int64", .given = dtype_name(*p.dtype)});
    c.set_out_dtype(0, *p.dtype);
  }
  if (c.out_dtype(0) == DType::kUnknown) c.set_out_dtype(0, DType::kInt32);
  if (c.out_dtype(0) != DType::kInt32 && c.out_dtype(0) != DType::kInt64)
    throw DTypeError({.input = c.output_name(0), .expected = "int32 or int64", .given = dtype_name(c.out_dtype(0))});
  if (p.shape) {
    set_out_from_shape_param(c, 0, *p.shape);
  } else if (!c.out_shape(0).rank_known()) {
    c.set_out_shape(0, is_np_shape() ? Shape::scalar() : Shape({1}));
  }
}

template <typename T>
void fill(const RandintParams& p, const KernelArgs& a) {
  T* out = a.out[0].as<T>();
  const uint64_t range = static_cast<uint64_t>(p.high) - static_cast<uint64_t>(p.low);
  if (device::current()) {
    const device::DrawArguments drawn{.out = out,
                                      .n = a.out[0].size(),
                                      .seed = a.rng.seed,
                                      .stream = a.rng.stream,
                                      .low = static_cast<uint64_t>(p.low),
                                      .range = range};
    return on_device::launch("draw.cuh", "DrawArguments", on_device::with_dtype("draw_integers", a.out[0].dtype),
                             drawn.n, drawn);
  }
  parallel_for(a.out[0].size(), kElementNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels::ElementBits bits(a.rng, static_cast<uint64_t>(i));
      out[i] = static_cast<T>(static_cast<uint64_t>(p.low) + kernels::draw_below(bits, range));
    }
  });
}

}  // namespace

void register_randint(OpRegistry& ops) {
  ops.declare<RandintParams>("_random_randint")
      .alias("random_randint")
      .doc("Uniformly distributed integers in [low, high).")
      .output("output", "shape given by the parameter; int32 or int64")
      .infer(infer_randint)
      .cpu([](const RandintParams& p, const KernelArgs& a) {
        a.out[0].dtype == DType::kInt64 ? fill<int64_t>(p, a) : fill<int32_t>(p, a);
      })
      .any_device()
      .random()
      .cost([](const RandintParams&, auto, auto out) { return out[0].shape.size() * 20; })
      .gradient(kNotDifferentiable)
      .sample({}, {{"low", "-3"}, {"high", "4"}, {"shape", "(2, 3)"}});
}

}  // namespace hybridnet::ops
