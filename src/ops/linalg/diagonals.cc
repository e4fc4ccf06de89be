// Operators that extract diagonals and triangles from matrices or build matrices from them, and the sum of the
// logarithms of a diagonal.
#include <cmath>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/device/matrix_arguments.h"
#include "ops/device_launch.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"

namespace hybridnet::ops {
namespace {

struct DiagonalParams {
  int32_t offset;
  static void describe(ParamSchema<DiagonalParams>& schema) {
    schema.field("offset", &DiagonalParams::offset)
        .default_value(0)
        .doc("Index of the diagonal: positive above the main one, negative below.");
  }
};

struct TrianParams {
  int32_t offset;
  bool lower;
  static void describe(ParamSchema<TrianParams>& schema) {
    schema.field("offset", &TrianParams::offset)
        .default_value(0)
        .doc(
            "The diagonal that bounds the triangle: positive: upper triangles from above the main diagonal, negative: "
            "lower ones.");
    schema.field("lower", &TrianParams::lower)
        .default_value(true)
        .doc("Whether the triangle is the lower one, if offset is 0.");
  }
};

// The part of a square matrix whose elements are consecutive in the vector: row by row, begin <= column < end.
struct Part {
  int64_t n;  // size of the matrix
  int64_t offset;
  bool band;  // the diagonal only
  bool lower;
  int64_t begin(int64_t row) const { return band || !lower ? std::clamp<int64_t>(row + offset, 0, n) : 0; }
  int64_t end(int64_t row) const {
    if (band) return row + offset >= 0 && row + offset < n ? row + offset + 1 : begin(row);
    return lower ? std::clamp<int64_t>(row + offset + 1, 0, n) : n;
  }
};

// Length of the vector for a matrix of size n.
int64_t length_of(int64_t n, int64_t offset, bool band) {
  const int64_t side = std::max<int64_t>(n - std::abs(offset), 0);
  return band ? side : checked_times(side, side + 1) / 2;
}

// Size of the matrix for a vector of length k. Throws ParamError if none fits.
int64_t size_of(int64_t k, int64_t offset, bool band, const Shape& given) {
  if (band) return k + std::abs(offset);
  int64_t side = static_cast<int64_t>((std::sqrt(8.0 * static_cast<double>(k) + 1) - 1) / 2);
  while (side * (side + 1) / 2 < k) ++side;
  if (side * (side + 1) / 2 == k) return side + std::abs(offset);
  throw ShapeError({.input = "A",
                    .expected = "as many numbers as a triangle has: 1, 3, 6, 10, ... along the last axis",
                    .given = given.str()});
}

Part part_of(const DiagonalParams& p, int64_t n) { return {n, p.offset, true, true}; }
Part part_of(const TrianParams& p, int64_t n) { return {n, p.offset, false, p.offset == 0 ? p.lower : p.offset < 0}; }
constexpr bool is_band(const DiagonalParams&) { return true; }
constexpr bool is_band(const TrianParams&) { return false; }

template <typename P>
void infer_extract(const P& p, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, true);
  const Shape& a = c.in_shape(0);
  if (!a.rank_known()) return;
  const int n = a.ndim();
  const int64_t size = a[n - 1] != kUnknownDim ? a[n - 1] : a[n - 2];
  if (size != kUnknownDim && std::abs(int64_t{p.offset}) >= std::max<int64_t>(size, 1)) {
    throw ParamError(
        {.input = "offset",
         .expected = "a diagonal of the matrices, in (-" + std::to_string(size) + ", " + std::to_string(size) + ")",
         .given = std::to_string(p.offset)});
  }
  Shape out = Shape::scalar();
  for (int i = 0; i + 2 < n; ++i) out.push_back(a[i]);
  out.push_back(size == kUnknownDim ? kUnknownDim : length_of(size, p.offset, is_band(p)));
  c.set_out_shape(0, out);
}

template <typename P>
void infer_make(const P& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& a = c.in_shape(0);
  if (!a.rank_known()) return;
  if (a.ndim() < 1) throw ShapeError({.input = "A", .expected = "at least 1 dimension", .given = "shape " + a.str()});
  const int n = a.ndim();
  const int64_t size = a[n - 1] == kUnknownDim ? kUnknownDim : size_of(a[n - 1], p.offset, is_band(p), a);
  Shape out = a;
  out[n - 1] = size;
  out.push_back(size);
  c.set_out_shape(0, out);
}

// Copies the part of every matrix to the vectors, or back.
void copy_on_device(const Part& part, const Matrices& m, DType dtype, const void* in, void* out, bool makes) {
  const device::PartArguments a{.in = in,
                                .out = out,
                                .count = m.count,
                                .n = m.rows,
                                .length = length_of(m.rows, part.offset, part.band),
                                .offset = part.offset,
                                .band = part.band,
                                .lower = part.lower};
  const std::string types = "uint" + std::to_string(8 * dtype_size(dtype)) + "_t, " + (makes ? "true" : "false");
  on_device::launch("matrices.cuh", "PartArguments", on_device::with_type("copy_part", types), m.count * m.step(), a);
}

template <typename P>
void run_extract(const P& p, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  const Part part = part_of(p, m.rows);
  if (device::current()) return copy_on_device(part, m, args.in[0].dtype, args.in[0].data, args.out[0].data, false);
  dispatch_floating(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = args.out[0].as<T>();
    for (int64_t i = 0; i < m.count; ++i) {
      for (int64_t row = 0; row < m.rows; ++row) {
        const T* line = args.in[0].as<T>() + i * m.step() + row * m.columns;
        out = std::copy(line + part.begin(row), line + part.end(row), out);
      }
    }
  });
}

template <typename P>
void run_make(const P& p, const KernelArgs& args) {
  const Matrices m(*args.out[0].shape);
  const Part part = part_of(p, m.rows);
  if (device::current()) return copy_on_device(part, m, args.in[0].dtype, args.in[0].data, args.out[0].data, true);
  dispatch_floating(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = args.in[0].as<T>();
    T* out = args.out[0].as<T>();
    std::fill_n(out, args.out[0].size(), static_cast<T>(0.0f));
    for (int64_t i = 0; i < m.count; ++i) {
      for (int64_t row = 0; row < m.rows; ++row) {
        const int64_t count = part.end(row) - part.begin(row);
        std::copy_n(in, count, out + i * m.step() + row * m.columns + part.begin(row));
        in += count;
      }
    }
  });
}

// Each operator is the adjoint, and so the gradient, of the other.
template <typename P>
void declare_pair(OpRegistry& ops, const std::string& kind, const char* extract_doc, const char* make_doc,
                  std::vector<Sample> extract_samples, std::vector<Sample> make_samples) {
  static const std::string extract_name = "_linalg_extract" + kind, make_name = "_linalg_make" + kind;
  static const OpRef extract{extract_name.c_str()}, make{make_name.c_str()};
  const auto gradient_by = [](const OpRef& other) {
    return [&other](const P& p, const GradientContext& g) {
      return g.output_grad(0) ? Values{call(other, {g.output_grad(0)}, ParamSchema<P>::box(p))} : Values{};
    };
  };
  auto taken = ops.declare<P>(extract_name);
  taken.alias("linalg_extract" + kind)
      .doc(extract_doc)
      .input("A", "stack of square matrices (..., n, n)")
      .output("output", "(..., elements)")
      .infer(infer_extract<P>)
      .cpu(run_extract<P>, kFloating)
      .any_device()
      .gradient(gradient_by(make), Saves::nothing())
      .amp(AmpType::kFloat);
  for (Sample& s : extract_samples) taken.sample(std::move(s));
  auto made = ops.declare<P>(make_name);
  made.alias("linalg_make" + kind)
      .doc(make_doc)
      .input("A", "(..., elements)")
      .output("output", "stack of square matrices (..., n, n)")
      .infer(infer_make<P>)
      .cpu(run_make<P>, kFloating)
      .any_device()
      .gradient(gradient_by(extract), Saves::nothing())
      .amp(AmpType::kFloat);
  for (Sample& s : make_samples) made.sample(std::move(s));
}

Sample shaped(Shape shape, std::vector<std::pair<std::string, std::string>> attrs) {
  Sample s;
  s.inputs = {std::move(shape)};
  s.attrs = std::move(attrs);
  return s;
}

void run_sumlogdiag(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  if (device::current()) {
    const device::PartArguments a{.in = args.in[0].data, .out = args.out[0].data, .count = m.count, .n = m.rows};
    return on_device::launch("matrices.cuh", "PartArguments",
                             on_device::with_dtype("sum_log_diagonals", args.in[0].dtype), m.count, a);
  }
  dispatch_floating(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    for (int64_t i = 0; i < m.count; ++i) {
      A sum = 0;
      for (int64_t k = 0; k < m.rows; ++k)
        sum += std::log(static_cast<A>(args.in[0].as<T>()[i * m.step() + k * (m.columns + 1)]));
      args.out[0].as<T>()[i] = static_cast<T>(sum);
    }
  });
}

Values sumlogdiag_gradient(const NoParams&, const GradientContext& g) {
  static const OpRef kExtract{"_linalg_extractdiag"}, kMake{"_linalg_makediag"};
  if (!g.output_grad(0)) return {};
  const Value diagonal = call(kExtract, {g.input(0)});
  Shape per_diagonal = spec_of(diagonal).shape;
  per_diagonal[per_diagonal.ndim() - 1] = 1;
  return {call(kMake, {reshape(g.output_grad(0), per_diagonal) / diagonal})};
}

}  // namespace

void register_diagonals(OpRegistry& ops) {
  declare_pair<DiagonalParams>(
      ops, "diag", "A diagonal of every matrix.", "Matrices that are zero except on one diagonal.",
      {shaped({3, 3}, {}), shaped({2, 3, 3}, {{"offset", "1"}}), shaped({4, 4}, {{"offset", "-2"}})},
      {shaped({3}, {}), shaped({2, 2}, {{"offset", "1"}}), shaped({2}, {{"offset", "-2"}})});
  declare_pair<TrianParams>(ops, "trian", "A triangle of every matrix, row by row.",
                            "Matrices that are zero but for one triangle, given row by row.",
                            {shaped({3, 3}, {}), shaped({2, 3, 3}, {{"lower", "False"}}),
                             shaped({4, 4}, {{"offset", "1"}}), shaped({4, 4}, {{"offset", "-2"}})},
                            {shaped({6}, {}), shaped({2, 3}, {{"lower", "False"}}), shaped({3}, {{"offset", "1"}}),
                             shaped({3}, {{"offset", "-1"}})});
  ops.declare("_linalg_sumlogdiag")
      .alias("linalg_sumlogdiag")
      .doc("The sum of the logarithms of the diagonal of every matrix.")
      .input("A", "stack of square matrices (..., n, n) with positive diagonals")
      .output("output", "the axes of A before the last two; (1,) for a single matrix")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_dtypes();
        require_matrices(c, 0, true);
        if (c.in_shape(0).rank_known()) c.set_out_shape(0, stack_shape(c.in_shape(0), 2));
      })
      .cpu(run_sumlogdiag, kFloating)
      .any_device()
      .gradient(sumlogdiag_gradient, Saves::of({0}))
      .amp(AmpType::kFloat)
      .sample({{3, 3}}, {}, 0.5, 2.0)
      .sample({{2, 2, 2}}, {}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
