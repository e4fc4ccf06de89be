// _image_normalize: subtracts the mean of every channel and divides by its standard deviation.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/image_arguments.h"
#include "ops/device_launch.h"
#include "ops/device_table.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct NormalizeParams {
  std::vector<double> mean, std;
  static void describe(ParamSchema<NormalizeParams>& schema) {
    schema.field("mean", &NormalizeParams::mean)
        .default_value(AttrValue::List{0.0, 0.0, 0.0, 0.0})
        .doc("Means of the channels, or one for all.");
    schema.field("std", &NormalizeParams::std)
        .default_value(AttrValue::List{1.0, 1.0, 1.0, 1.0})
        .doc("Standard deviations of the channels, or one for all.");
  }
  double mean_of(int64_t c) const { return mean.size() == 1 ? mean[0] : mean[static_cast<size_t>(c)]; }
  double std_of(int64_t c) const { return std.size() == 1 ? std[0] : std[static_cast<size_t>(c)]; }
};

// Checks the number of values. The defaults have four numbers and apply to any number of channels.
void check_numbers(const char* field, const std::vector<double>& given, int64_t channels, double neutral) {
  if (given.size() == 1 || static_cast<int64_t>(given.size()) == channels) return;
  const bool untouched = static_cast<int64_t>(given.size()) > channels &&
                         std::all_of(given.begin(), given.end(), [&](double v) { return v == neutral; });
  if (untouched) return;
  throw ParamError({.input = field,
                    .expected = "1 or " + std::to_string(channels) + " numbers, one per channel",
                    .given = std::to_string(given.size())});
}

void infer_normalize(const NormalizeParams& p, InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
  const Shape& s = c.in_shape(0);
  if (!s.rank_known()) return;
  if (s.ndim() != 3 && s.ndim() != 4) {
    throw ShapeError({.input = "data",
                      .expected = "(channels, height, width), or a batch of those",
                      .given = "shape " + s.str(),
                      .fix = "apply to_tensor first"});
  }
  const int64_t channels = s[s.ndim() - 3];
  if (channels == kUnknownDim) return;
  check_numbers("mean", p.mean, channels, 0.0);
  check_numbers("std", p.std, channels, 1.0);
}

void run_normalize(const NormalizeParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const int64_t channels = s[s.ndim() - 3], pixels = s[s.ndim() - 2] * s[s.ndim() - 1];
  const int64_t planes = pixels > 0 ? a.in[0].size() / pixels : 0;
  if (device::current()) {
    Temporary<double> numbers;
    for (int64_t c = 0; c < channels; ++c) numbers.push_back(p.mean_of(c));
    for (int64_t c = 0; c < channels; ++c) numbers.push_back(p.std_of(c));
    const DeviceTable<double> table(numbers);
    const device::NormalizeArguments normalized{.in = a.in[0].data,
                                                .out = a.out[0].data,
                                                .n = a.in[0].size(),
                                                .pixels = pixels,
                                                .channels = channels,
                                                .mean = table.data(),
                                                .deviation = table.data() + channels};
    return on_device::launch("image.cuh", "NormalizeArguments",
                             on_device::with_dtype("normalize_channels", a.in[0].dtype), normalized.n, normalized);
  }
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    parallel_for(planes, 1.2 * static_cast<double>(pixels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const A mean = static_cast<A>(p.mean_of(i % channels)), deviation = static_cast<A>(p.std_of(i % channels));
        const T* in = a.in[0].as<T>() + i * pixels;
        T* out = a.out[0].as<T>() + i * pixels;
        for (int64_t j = 0; j < pixels; ++j) out[j] = static_cast<T>((static_cast<A>(in[j]) - mean) / deviation);
      }
    });
  });
}

Values normalize_gradient(const NormalizeParams& p, const GradientContext& g) {
  static const OpRef kNormalize{"_image_normalize"};
  if (!g.output_grad(0)) return {};
  return {call(kNormalize, {g.output_grad(0)}, ParamSchema<NormalizeParams>::box({{0.0}, p.std}))};
}

}  // namespace

void register_normalize(OpRegistry& ops) {
  ops.declare<NormalizeParams>("_image_normalize")
      .alias("_npx__image_normalize")
      .doc("(data - mean) / std, channel by channel.")
      .input("data", "floating (channels, height, width), or a batch of those")
      .names_its_input()
      .output("output", "shape and dtype of data")
      .inplace(0, 0)
      .infer(infer_normalize)
      .cpu(run_normalize, kFloating)
      .any_device()
      .gradient(normalize_gradient, Saves::nothing())
      .sample({{3, 2, 4}}, {{"mean", "(0.1, 0.2, 0.3)"}, {"std", "(0.5, 1.5, 2)"}})
      .sample({{2, 1, 3, 2}}, {{"mean", "0.5"}, {"std", "(0.25,)"}})
      .sample({{3, 2, 2}});
}

}  // namespace hybridnet::ops
