// _random_x, _random_x_like and _sample_x for every distribution of distributions.h.
#include <cmath>
#include <string>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "kernels/elementwise/convert.h"
#include "kernels/random/device_random.h"
#include "kernels/random/normal.h"
#include "ops/device_launch.h"
#include "ops/random/distributions.h"
#include "ops/shape_param.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

constexpr int64_t kPiece = 4096;  // elements; a multiple of the elements in one batch of blocks
constexpr double kElementNs = 5;

template <typename D>
struct DrawParams {
  double first, second = 0.0;
  std::optional<Tuple> shape;
  std::string ctx;
  std::optional<DType> dtype;
  static void describe(ParamSchema<DrawParams>& schema) {
    schema.field(D::kParameters[0].name, &DrawParams::first)
        .default_value(D::kParameters[0].default_value)
        .doc(D::kParameters[0].doc);
    if constexpr (D::kParameters.size() > 1) {
      schema.field(D::kParameters[1].name, &DrawParams::second)
          .default_value(D::kParameters[1].default_value)
          .doc(D::kParameters[1].doc);
    }
    schema.field("shape", &DrawParams::shape)
        .none_by_default()
        .doc("Shape of the output; None: the shape of out, else one number.");
    describe_ctx<DrawParams>(schema);
    schema.field("dtype", &DrawParams::dtype)
        .none_by_default()
        .doc("float16, float32, float64 or bfloat16; None: float32.");
    schema.check([](const DrawParams& p) { D::check(p.first, p.second); });
  }
};

template <typename D>
struct DrawLikeParams {
  double first, second = 0.0;
  static void describe(ParamSchema<DrawLikeParams>& schema) {
    schema.field(D::kParameters[0].name, &DrawLikeParams::first)
        .default_value(D::kParameters[0].default_value)
        .doc(D::kParameters[0].doc);
    if constexpr (D::kParameters.size() > 1) {
      schema.field(D::kParameters[1].name, &DrawLikeParams::second)
          .default_value(D::kParameters[1].default_value)
          .doc(D::kParameters[1].doc);
    }
    schema.check([](const DrawLikeParams& p) { D::check(p.first, p.second); });
  }
};

struct SampleParams {
  Tuple shape;
  std::optional<DType> dtype;
  static void describe(ParamSchema<SampleParams>& schema) {
    schema.field("shape", &SampleParams::shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Shape drawn for every element of the parameters.");
    schema.field("dtype", &SampleParams::dtype)
        .none_by_default()
        .doc("float16, float32, float64 or bfloat16; None: float32.");
  }
};

// Draws four floats per block; element i of a tensor belongs to block i / 4.
void uniform_floats(RngKey key, int64_t begin, int64_t end, uint32_t* bits, auto&& store) {
  constexpr int64_t kBatch = 256;
  for (int64_t i = begin; i < end; i += kBatch) {
    const int64_t n = std::min(kBatch, end - i);
    kernels::philox_fill(key, static_cast<uint64_t>(i / 4), (n + 3) / 4, bits);
    store(i, n, bits);
  }
}

// A value that rounding to T lifts to `high` becomes `low`.
template <typename T>
void fill_uniform(T* out, int64_t n, RngKey key, double low, double high) {
  if (device::current()) return kernels::on_device::fill_uniform(key, dtype_of<T>::value, low, high, n, out);
  const float from = static_cast<float>(low), range = static_cast<float>(high - low);
  parallel_for((n + kPiece - 1) / kPiece, kElementNs * kPiece, [&](int64_t first, int64_t last) {
    uint32_t bits[256];
    uniform_floats(key, first * kPiece, std::min(n, last * kPiece), bits,
                   [&](int64_t at, int64_t count, const uint32_t* words) {
                     for (int64_t k = 0; k < count; ++k) {
                       const T value = static_cast<T>(from + range * kernels::uniform_float(words[k]));
                       out[at + k] = value >= static_cast<T>(high) ? static_cast<T>(low) : value;
                     }
                   });
  });
}
void fill_uniform(double* out, int64_t n, RngKey key, double low, double high) {
  if (device::current()) return kernels::on_device::fill_uniform(key, DType::kFloat64, low, high, n, out);
  parallel_for(n, kElementNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const kernels::PhiloxBlock block = kernels::philox(key, static_cast<uint64_t>(i / 2));
      const int word = static_cast<int>(i % 2) * 2;
      const double value = low + (high - low) * kernels::uniform_double(block.word[word], block.word[word + 1]);
      out[i] = value >= high ? low : value;
    }
  });
}

// Numbers of halves are drawn as float32 and converted.
void fill_normal_on_device(DType dtype, void* out, int64_t n, RngKey key, float mean, float deviation) {
  if (dtype == DType::kFloat32) return kernels::fill_normal(key, mean, deviation, 0, n, static_cast<float*>(out));
  const OwnedBlock drawn(n * static_cast<int64_t>(sizeof(float)), device::current()->device());
  kernels::fill_normal(key, mean, deviation, 0, n, static_cast<float*>(drawn.data()));
  kernels::convert(DType::kFloat32, drawn.data(), dtype, out, n);
}

template <typename T>
void fill_normal(T* out, int64_t n, RngKey key, double loc, double scale) {
  constexpr int64_t kBatch = 256;
  const float mean = static_cast<float>(loc), deviation = static_cast<float>(scale);
  if (device::current()) return fill_normal_on_device(dtype_of<T>::value, out, n, key, mean, deviation);
  parallel_for((n + kPiece - 1) / kPiece, kElementNs * kPiece, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kPiece, end = std::min(n, last * kPiece);
    if constexpr (std::is_same_v<T, float>) {
      kernels::fill_normal(key, mean, deviation, begin, end - begin, out + begin);
    } else {
      float drawn[kBatch];
      for (int64_t i = begin; i < end; i += kBatch) {
        const int64_t count = std::min(kBatch, end - i);
        kernels::fill_normal(key, mean, deviation, i, count, drawn);
        for (int64_t k = 0; k < count; ++k) out[i + k] = static_cast<T>(drawn[k]);
      }
    }
  });
}
void fill_normal(double* out, int64_t n, RngKey key, double loc, double scale) {
  if (device::current()) return kernels::on_device::fill_normal(key, loc, scale, n, out);
  parallel_for((n + 1) / 2, 2 * kElementNs, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const kernels::PhiloxBlock block = kernels::philox(key, static_cast<uint64_t>(pair));
      const double radius =
          scale * std::sqrt(-2.0 * std::log(1.0 - kernels::uniform_double(block.word[0], block.word[1])));
      const double angle = 6.283185307179586 * kernels::uniform_double(block.word[2], block.word[3]);
      out[2 * pair] = loc + radius * std::cos(angle);
      if (2 * pair + 1 < n) out[2 * pair + 1] = loc + radius * std::sin(angle);
    }
  });
}

template <typename D>
void launch_draw(const char* function, DType dtype, const device::DrawArguments& a) {
  on_device::launch(
      "draw.cuh", "DrawArguments",
      std::string(function) + "<hybridnet::kernels::" + D::kDraw + ", " + on_device::element_name(dtype) + ">", a.n, a);
}

template <typename D>
void fill_drawn(const TensorRef& out, RngKey key, double first, double second) {
  dispatch_floating(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = out.as<T>();
    if constexpr (std::is_same_v<D, Uniform>) return fill_uniform(data, out.size(), key, first, second);
    if constexpr (std::is_same_v<D, Normal>) return fill_normal(data, out.size(), key, first, second);
    if (device::current())
      return launch_draw<D>(
          "draw", out.dtype,
          {.out = data, .n = out.size(), .seed = key.seed, .stream = key.stream, .first = first, .second = second});
    parallel_for(out.size(), 16 * kElementNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        kernels::ElementBits bits(key, static_cast<uint64_t>(i));
        data[i] = static_cast<T>(D::draw(bits, first, second));
      }
    });
  });
}

// The values of a tensor of parameters of any dtype.
Temporary<double> as_doubles(const TensorRef& tensor) {
  Temporary<double> values(static_cast<size_t>(tensor.size()));
  kernels::convert_parallel(tensor.dtype, tensor.data, DType::kFloat64, values.data(), tensor.size());
  return values;
}

template <typename D>
void sample_on_device(const KernelArgs& a, int64_t per_parameter) {
  const int64_t count = a.in[0].size(), bytes = count * static_cast<int64_t>(sizeof(double));
  const OwnedBlock parameters(2 * bytes, device::current()->device());
  char* const first = static_cast<char*>(parameters.data());
  for (size_t i = 0; i < a.in.size(); ++i)
    kernels::convert_parallel(a.in[i].dtype, a.in[i].data, DType::kFloat64, first + static_cast<int64_t>(i) * bytes,
                              count);
  launch_draw<D>("sample", a.out[0].dtype,
                 {.out = a.out[0].data,
                  .n = a.out[0].size(),
                  .seed = a.rng.seed,
                  .stream = a.rng.stream,
                  .per_parameter = per_parameter,
                  .firsts = reinterpret_cast<const double*>(first),
                  .seconds = a.in.size() > 1 ? reinterpret_cast<const double*>(first + bytes) : nullptr});
}

template <typename D>
void fill_sampled(const KernelArgs& a) {
  const TensorRef& out = a.out[0];
  const int64_t parameters = a.in[0].size();
  if (parameters == 0) return;
  const int64_t per_parameter = out.size() / parameters;
  if (device::current()) return sample_on_device<D>(a, per_parameter);
  const Temporary<double> first = as_doubles(a.in[0]);
  const Temporary<double> second = a.in.size() > 1 ? as_doubles(a.in[1]) : Temporary<double>(first.size());
  dispatch_floating(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = out.as<T>();
    parallel_for(out.size(), 16 * kElementNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto k = static_cast<size_t>(i / per_parameter);
        kernels::ElementBits bits(a.rng, static_cast<uint64_t>(i));
        data[i] = static_cast<T>(D::draw(bits, first[k], second[k]));
      }
    });
  });
}

// The dtype is the requested one, the one by the use of the output, or float32.
void infer_drawn_dtype(InferContext& c, std::optional<DType> asked) {
  if (asked && *asked != DType::kUnknown) {
    if (!is_floating(*asked))
      throw ParamError({.input = "dtype", .expected = kFloating.str(), .given = dtype_name(*asked)});
    c.set_out_dtype(0, *asked);
  }
  if (c.out_dtype(0) == DType::kUnknown) c.set_out_dtype(0, DType::kFloat32);
  if (!kFloating.has(c.out_dtype(0)))
    throw DTypeError({.input = c.output_name(0), .expected = kFloating.str(), .given = dtype_name(c.out_dtype(0))});
}

template <typename D>
void infer_draw(const DrawParams<D>& p, InferContext& c) {
  infer_drawn_dtype(c, p.dtype);
  if (p.shape) {
    set_out_from_shape_param(c, 0, *p.shape);
  } else if (!c.out_shape(0).rank_known()) {
    c.set_out_shape(0, is_np_shape() ? Shape::scalar() : Shape({1}));
  }
}

void infer_sample(const SampleParams& p, InferContext& c) {
  infer_drawn_dtype(c, p.dtype);
  if (c.num_in() == 2) {
    c.unify_dtypes({0, 1}, {});
    c.set_in_shape(1, c.in_shape(0));
    c.set_in_shape(0, c.in_shape(1));
  }
  const Shape& out = c.out_shape(0);
  if (!c.in_shape(0).rank_known() && out.rank_known() && out.ndim() >= p.shape.ndim()) {
    const Shape parameters(out.dims().first(static_cast<size_t>(out.ndim() - p.shape.ndim())));
    for (int i = 0; i < c.num_in(); ++i) c.set_in_shape(i, parameters);
  }
  if (!c.in_shape(0).rank_known()) return;
  Shape shape = c.in_shape(0);
  for (int64_t size : p.shape) shape.push_back(size);
  c.set_out_shape(0, shape);
}

// Logarithm, root and sine cost far more than the memory traffic.
int64_t draw_cost(std::span<const TensorSpec> out, int64_t ns_per_element) {
  return out[0].shape.size() * ns_per_element;
}

template <typename D>
void register_distribution(OpRegistry& ops, bool with_aliases, bool like) {
  // The others reject some words, so each element draws as many as it needs.
  constexpr bool kCheap = std::is_same_v<D, Uniform> || std::is_same_v<D, Normal>;
  [[maybe_unused]] constexpr int64_t kCost = std::is_same_v<D, Uniform> ? 2 : kCheap ? 8 : 80;
  const std::string name = D::kName;
  auto random = ops.declare<DrawParams<D>>("_random_" + name);
  random.alias("random_" + name)
      .doc(D::kDoc)
      .output("output", "shape given by the parameter; floating")
      .infer(infer_draw<D>)
      .cpu([](const DrawParams<D>& p, const KernelArgs& a) { fill_drawn<D>(a.out[0], a.rng, p.first, p.second); },
           kFloating)
      .any_device()
      .random()
      .cost([](const DrawParams<D>&, auto, auto out) { return draw_cost(out, kCost); })
      .gradient(kNotDifferentiable)
      .sample({}, {{"shape", "(2, 3)"}});
  if (with_aliases) random.alias(name);
  if (like) {
    auto drawn_like = ops.declare<DrawLikeParams<D>>("_random_" + name + "_like");
    drawn_like.doc(std::string(D::kDoc) + " One per element of data.")
        .input("data", "defines shape and dtype only; floating")
        .output("output", "shape and dtype of data")
        .infer([](const DrawLikeParams<D>&, InferContext& c) {
          c.unify_shapes();
          c.unify_dtypes();
        })
        .cpu([](const DrawLikeParams<D>& p, const KernelArgs& a) { fill_drawn<D>(a.out[0], a.rng, p.first, p.second); },
             kFloating)
        .any_device()
        .random()
        .cost([](const DrawLikeParams<D>&, auto, auto out) { return draw_cost(out, kCost); })
        .gradient(kNotDifferentiable)
        .sample({{2, 3}}, {});
  }
  auto sample = ops.declare<SampleParams>("_sample_" + name);
  sample.alias("sample_" + name).doc(std::string(D::kDoc) + " One or more per element of the parameters.");
  Sample drawn;
  drawn.attrs = {{"shape", "(3,)"}};
  drawn.low = 0.2;
  drawn.high = 0.9;
  for (const ParameterInfo& p : D::kParameters) {
    sample.input(p.tensor_name, p.doc);
    drawn.inputs.push_back(Shape({2}));
  }
  drawn.check_gradient = false;
  drawn.note = "random";
  sample.output("output", "shape of the parameters followed by shape; floating")
      .infer(infer_sample)
      .cpu([](const SampleParams&, const KernelArgs& a) { fill_sampled<D>(a); })
      .any_device()
      .random()
      .cost([](const SampleParams&, auto, auto out) { return draw_cost(out, 80); })
      .gradient(kNotDifferentiable)
      .sample(drawn);
}

// The key in the last four of a row of float64 numbers: two 64-bit numbers in halves.
RngKey key_in(const TensorRef& row) {
  const double* halves = row.as<double>() + row.size() - 4;
  const auto bits = [](double half) { return half >= 0 && half < 0x1p32 ? static_cast<uint64_t>(half) : 0; };
  return {bits(halves[0]) << 32 | bits(halves[1]), bits(halves[2]) << 32 | bits(halves[3])};
}

void register_keyed_normal(OpRegistry& ops) {
  Sample sample;
  sample.inputs = {{2, 3}, {1, 5}};
  sample.dtypes = {DType::kUnknown, DType::kFloat64};
  sample.low = 0;
  sample.high = 9;
  sample.integer_valued = true;
  ops.declare("_keyed_normal_like")
      .doc("Normally distributed numbers with mean 0 and deviation 1 that depend only on a given key.")
      .input("data", "defines shape and dtype only; floating")
      .input("rates", "float64 (1, columns); the last four are the key: seed and stream in halves of 32 bits")
      .output("output", "shape and dtype of data")
      .infer([](const NoParams&, InferContext& c) {
        c.set_out_shape(0, c.in_shape(0));
        c.set_in_shape(0, c.out_shape(0));
        c.set_out_dtype(0, c.in_dtype(0));
        c.set_in_dtype(0, c.out_dtype(0));
        c.set_in_dtype(1, DType::kFloat64);
        const Shape& rates = c.in_shape(1);
        if (rates.known() && (rates.ndim() != 2 || rates[0] != 1 || rates[1] < 4))
          throw ShapeError({.input = "rates", .expected = "(1, 4 or more)", .given = rates.str()});
      })
      .cpu([](const NoParams&, const KernelArgs& a) { fill_drawn<Normal>(a.out[0], key_in(a.in[1]), 0, 1); }, kFloating)
      .cost([](const NoParams&, auto, auto out) { return draw_cost(out, 8); })
      .gradient(kNotDifferentiable)
      .internal()
      .allowed_in_files()
      .sample(sample);
}

}  // namespace

void register_draw(OpRegistry& ops) {
  register_keyed_normal(ops);
  register_distribution<Uniform>(ops, true, true);
  register_distribution<Normal>(ops, true, true);
  register_distribution<Gamma>(ops, false, true);
  register_distribution<Exponential>(ops, false, true);
  register_distribution<Poisson>(ops, false, true);
  register_distribution<NegativeBinomial>(ops, false, true);
  register_distribution<GeneralizedNegativeBinomial>(ops, false, true);
}

}  // namespace hybridnet::ops
