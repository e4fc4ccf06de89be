// _sample_unique_zipfian: classes drawn without replacement from an approximately log-uniform distribution, for sampled
// softmax (Jean et al., ACL 2015).
#include <cmath>
#include <unordered_set>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "kernels/random/rng.h"
#include "ops/device_launch.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct ZipfianParams {
  int32_t range_max;
  std::optional<Tuple> shape;
  static void describe(ParamSchema<ZipfianParams>& schema) {
    schema.field("range_max", &ZipfianParams::range_max).at_least(1).doc("Number of classes.");
    schema.field("shape", &ZipfianParams::shape)
        .none_by_default()
        .doc("(rows, classes drawn per row); None: the shape of out.");
    schema.check([](const ZipfianParams& p) {
      if (!p.shape) return;
      if (p.shape->ndim() != 2 || (*p.shape)[0] < 0 || (*p.shape)[1] < 0)
        throw ParamError({.input = "shape", .expected = "(rows, classes drawn per row)", .given = p.shape->str()});
    });
  }
};

void infer_zipfian(const ZipfianParams& p, InferContext& c) {
  c.set_out_dtype(0, DType::kInt64);
  c.set_out_dtype(1, DType::kInt64);
  c.set_out_shape(0, p.shape ? *p.shape : Shape::unknown(2));
  const Shape& out = c.out_shape(0);
  c.set_out_shape(1, Shape({out[0]}));
  if (out[1] <= p.range_max) return;
  throw ParamError({.input = "shape",
                    .expected = "at most range_max=" + std::to_string(p.range_max) + " classes per row",
                    .given = std::to_string(out[1]),
                    .because = "a row holds no class twice"});
}

void run_zipfian(const ZipfianParams& p, const KernelArgs& a) {
  const int64_t rows = (*a.out[0].shape)[0], wanted = (*a.out[0].shape)[1];
  const double log_range = std::log(static_cast<double>(p.range_max));
  if (device::current()) {
    const device::ClassArguments drawn{.out = a.out[0].as<int64_t>(),
                                       .tries = a.out[1].as<int64_t>(),
                                       .rows = rows,
                                       .wanted = wanted,
                                       .log_range = log_range,
                                       .seed = a.rng.seed,
                                       .stream = a.rng.stream};
    return on_device::launch("draw.cuh", "ClassArguments", "unique_classes", rows, drawn);
  }
  parallel_for(rows, 20.0 * static_cast<double>(wanted), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      kernels::ElementBits bits(a.rng, static_cast<uint64_t>(row));
      std::unordered_set<int64_t, std::hash<int64_t>, std::equal_to<>, TemporaryAllocator<int64_t>> taken;
      taken.reserve(static_cast<size_t>(wanted));
      int64_t* out = a.out[0].as<int64_t>() + row * wanted;
      int64_t tries = 0;
      for (int64_t found = 0; found < wanted; ++tries) {
        const int64_t drawn = std::llround(std::exp(bits.uniform() * log_range)) - 1;
        if (taken.insert(drawn).second) out[found++] = drawn;
      }
      a.out[1].as<int64_t>()[row] = tries;
    }
  });
}

}  // namespace

void register_unique_zipfian(OpRegistry& ops) {
  ops.declare<ZipfianParams>("_sample_unique_zipfian")
      .doc(
          "Classes drawn without replacement, the first classes most often: class k is round(exp(u log(range_max))) - "
          "1 for uniform u.")
      .output("samples", "int64 (rows, classes drawn per row), no class twice in a row")
      .output("num_tries", "int64 (rows,): number of draws until a row was full")
      .infer(infer_zipfian)
      .cpu(run_zipfian)
      .any_device()
      .random()
      .gradient(kNotDifferentiable)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(std::vector<Shape>{}, {{"range_max", "50"}, {"shape", "(2, 10)"}});
}

}  // namespace hybridnet::ops
