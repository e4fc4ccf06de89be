// Operators that find elements by value, in NumPy's interface: nonzero, unique, bincount, searchsorted. The size of
// their outputs depends on the values.
#include <algorithm>
#include <numeric>
#include <vector>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/matrix_arguments.h"
#include "kernels/elementwise/integers.h"
#include "kernels/index/indices.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kTake{"take"};

// ------------------------------------------------------------------------------------------------------------- nonzero
void run_nonzero(const NoParams&, const KernelArgs& a, const Op::Allocate& allocate) {
  const Shape& shape = *a.in[0].shape;
  std::vector<int64_t> found;
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* values = a.in[0].as<T>();
    for (int64_t i = 0; i < a.in[0].size(); ++i)
      if (static_cast<double>(values[i]) != 0.0) found.push_back(i);
  });
  const TensorRef out = allocate(0, {Shape{static_cast<int64_t>(found.size()), shape.ndim()}, DType::kInt64});
  int64_t* row = out.as<int64_t>();
  for (int64_t place : found) {
    for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
      row[axis] = place % shape[axis];
      place /= shape[axis];
    }
    row += shape.ndim();
  }
}

// -------------------------------------------------------------------------------------------------------------- unique
struct UniqueParams {
  bool return_index, return_inverse, return_counts;
  std::optional<int32_t> axis;
  static void describe(ParamSchema<UniqueParams>& schema) {
    schema.field("return_index", &UniqueParams::return_index)
        .default_value(false)
        .doc("Whether to return the first index of each value.");
    schema.field("return_inverse", &UniqueParams::return_inverse)
        .default_value(false)
        .doc("Whether to return, for each element, the index of its value among the unique ones.");
    schema.field("return_counts", &UniqueParams::return_counts)
        .default_value(false)
        .doc("Whether to return the number of occurrences of each value.");
    schema.field("axis", &UniqueParams::axis).none_by_default().doc("Axis of the slices; None: single elements.");
  }
};

int unique_outputs(const UniqueParams& p) {
  return 1 + int{p.return_index} + int{p.return_inverse} + int{p.return_counts};
}

// Negative if a precedes b. NaN is the last value and equal to itself.
template <typename T>
int compared(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  return int{a != a} - int{b != b};
}

// The slices of an axis, compared element by element.
template <typename T>
struct Slices {
  const T* data;
  int64_t outer, rows, inner;
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o) {
      const T* base = data + o * rows * inner;
      for (int64_t i = 0; i < inner; ++i)
        if (const int c = compared(base[a * inner + i], base[b * inner + i])) return c;
    }
    return 0;
  }
};

constexpr int64_t kMaxEmptySlices = int64_t{1} << 24;

struct Groups {
  std::vector<int64_t> first, inverse, counts;
};

// Slices without elements are all equal.
Groups group_of_all(int64_t rows) {
  if (rows > kMaxEmptySlices)
    throw ShapeError({.input = "data",
                      .expected = "at most " + std::to_string(kMaxEmptySlices) + " slices, as they hold no elements",
                      .given = std::to_string(rows)});
  return {{0}, std::vector<int64_t>(static_cast<size_t>(rows), 0), {rows}};
}

template <typename T>
Groups groups_of(const Slices<T>& slices) {
  if (slices.rows > 0 && slices.outer * slices.inner == 0) return group_of_all(slices.rows);
  std::vector<int64_t> order(static_cast<size_t>(slices.rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int c = slices.compare(a, b);
    return c != 0 ? c < 0 : a < b;
  });
  Groups groups;
  groups.inverse.resize(order.size());
  for (const int64_t row : order) {
    if (groups.first.empty() || slices.compare(groups.first.back(), row) != 0) {
      groups.first.push_back(row);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.inverse[static_cast<size_t>(row)] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  return groups;
}

void run_unique(const UniqueParams& p, const KernelArgs& a, const Op::Allocate& allocate) {
  const Shape& shape = *a.in[0].shape;
  const int axis = p.axis ? normalize_axis(*p.axis, shape.ndim()) : 0;
  const int64_t outer = p.axis ? shape.size(0, axis) : 1, rows = p.axis ? shape[axis] : shape.size();
  const int64_t inner = p.axis ? shape.size(axis + 1, shape.ndim()) : 1;
  Groups groups;
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const Slices<T> slices{a.in[0].as<T>(), outer, rows, inner};
    groups = groups_of(slices);
    const auto count = static_cast<int64_t>(groups.first.size());
    Shape unique = p.axis ? shape : Shape{count};
    if (p.axis) unique[axis] = count;
    T* to = allocate(0, {unique, a.in[0].dtype}).template as<T>();
    for (int64_t o = 0; o < outer && unique.size() > 0; ++o)
      for (const int64_t row : groups.first) to = std::copy_n(slices.data + (o * rows + row) * inner, inner, to);
  });
  int next = 1;
  const auto give = [&](bool wanted, const std::vector<int64_t>& values) {
    if (!wanted) return;
    const TensorRef out = allocate(next++, {Shape{static_cast<int64_t>(values.size())}, DType::kInt64});
    std::copy(values.begin(), values.end(), out.as<int64_t>());
  };
  give(p.return_index, groups.first);
  give(p.return_inverse, groups.inverse);
  give(p.return_counts, groups.counts);
}

void infer_unique(const UniqueParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  for (int i = 1; i < c.num_out(); ++i) c.set_out_dtype(i, DType::kInt64);
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  Shape unique = p.axis ? in : Shape::unknown(1);
  if (p.axis) unique[normalize_axis(*p.axis, in.ndim())] = kUnknownDim;
  c.set_out_shape(0, unique);
  for (int i = 1; i < c.num_out(); ++i) c.set_out_shape(i, Shape::unknown(1));
}

// ------------------------------------------------------------------------------------------------------------ bincount
struct BincountParams {
  int32_t minlength;
  bool has_weights;
  static void describe(ParamSchema<BincountParams>& schema) {
    schema.field("minlength", &BincountParams::minlength).default_value(0).at_least(0).doc("Minimum number of bins.");
    schema.field("has_weights", &BincountParams::has_weights)
        .default_value(false)
        .doc("Whether there are weights to sum.");
  }
};

template <typename T>
void add_weights(const kernels::Indices& ids, const TensorRef& weights, const TensorRef& out) {
  using A = kernels::wrapping_t<accumulator_t<T>>;
  std::vector<A> sums(static_cast<size_t>(out.size()), A(0));
  for (int64_t i = 0; i < ids.size(); ++i) sums[static_cast<size_t>(ids[i])] += static_cast<A>(weights.as<T>()[i]);
  for (size_t i = 0; i < sums.size(); ++i) out.as<T>()[i] = static_cast<T>(sums[i]);
}

// Limits the number of bins, so that a single large number does not allocate all memory.
int64_t max_bins(int64_t numbers) { return std::max(int64_t{1} << 24, numbers * 64); }

[[noreturn]] void too_many_bins(const char* input, int64_t limit, int64_t given) {
  throw ValueError({.input = input,
                    .expected = "at most " + std::to_string(limit) + " bins: 2**24, or 64 for each number of x",
                    .given = std::to_string(given),
                    .fix = "count with np.unique(x, return_counts=True), which makes no empty bins"});
}

int64_t count_bins(const kernels::Indices& ids, int64_t minlength) {
  const int64_t limit = max_bins(ids.size());
  if (minlength > limit) too_many_bins("minlength", limit, minlength);
  int64_t bins = minlength;
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0)
      throw IndexError({.input = "x", .expected = "integers that are not negative", .given = std::to_string(ids[i])});
    if (ids[i] >= limit) too_many_bins("x", limit, ids[i]);
    bins = std::max(bins, ids[i] + 1);
  }
  return bins;
}

void run_bincount(const BincountParams& p, const KernelArgs& a, const Op::Allocate& allocate) {
  const kernels::Indices ids(a.in[0]);
  if (p.has_weights && a.in[1].size() != ids.size())
    throw ShapeError({.input = "weights",
                      .expected = "one weight for each of the " + std::to_string(ids.size()) + " numbers of x",
                      .given = a.in[1].shape->str()});
  const int64_t bins = count_bins(ids, p.minlength);
  if (!p.has_weights) {
    const TensorRef out = allocate(0, {Shape{bins}, DType::kInt64});
    kernels::fill(out, 0.0);
    for (int64_t i = 0; i < ids.size(); ++i) ++out.as<int64_t>()[ids[i]];
    return;
  }
  const TensorRef out = allocate(0, {Shape{bins}, a.in[1].dtype});
  dispatch_dtype(out.dtype, [&](auto zero) { add_weights<decltype(zero)>(ids, a.in[1], out); });
}

void infer_bincount(const BincountParams& p, InferContext& c) {
  if (p.has_weights) {
    c.unify_dtypes({1}, {0});
    c.set_in_shape(1, c.in_shape(0));
  } else {
    c.set_out_dtype(0, DType::kInt64);
  }
  if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() != 1)
    throw ShapeError({.input = "x", .expected = "a vector", .given = c.in_shape(0).str()});
  c.set_out_shape(0, Shape::unknown(1));
}

// -------------------------------------------------------------------------------------------------------- searchsorted
struct SearchParams {
  bool right;
  static void describe(ParamSchema<SearchParams>& schema) {
    schema.field("right", &SearchParams::right)
        .default_value(false)
        .doc("Whether to return the index after equal elements instead of before them.");
  }
};

void run_searchsorted(const SearchParams& p, const KernelArgs& a) {
  if (device::current()) {
    const device::SearchArguments searched{.sorted = a.in[0].data,
                                           .values = a.in[1].data,
                                           .out = a.out[0].as<int64_t>(),
                                           .n = a.out[0].size(),
                                           .count = a.in[0].size(),
                                           .right = p.right};
    return on_device::launch("matrices.cuh", "SearchArguments", on_device::with_dtype("search_sorted", a.in[0].dtype),
                             searched.n, searched);
  }
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *sorted = a.in[0].as<T>(), *end = sorted + a.in[0].size(), *values = a.in[1].as<T>();
    int64_t* out = a.out[0].as<int64_t>();
    const auto before = [](T x, T y) { return compared(x, y) < 0; };
    parallel_for(a.out[0].size(), 40.0, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i)
        out[i] = (p.right ? std::upper_bound(sorted, end, values[i], before)
                          : std::lower_bound(sorted, end, values[i], before)) -
                 sorted;
    });
  });
}

Sample small_numbers(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs,
                     double low = -1) {
  return {.inputs = std::move(inputs), .attrs = std::move(attrs), .low = low, .high = 3, .integer_valued = true};
}

Sample counted(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs) {
  Sample sample = small_numbers(std::move(inputs), std::move(attrs), 0);
  sample.check_gradient = false;
  sample.note = "the numbers of bins have no gradient";
  return sample;
}

}  // namespace

void register_numpy_searching(OpRegistry& ops) {
  ops.declare("_npx_nonzero")
      .alias("_npi_nonzero")
      .doc("The indices of the elements that are not 0, one row per element.")
      .input("x", "array of any shape")
      .output("out", "(number of nonzero elements, number of axes), int64")
      .infer([](const NoParams&, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        if (c.in_shape(0).rank_known()) c.set_out_shape(0, Shape{kUnknownDim, c.in_shape(0).ndim()});
      })
      .dynamic(run_nonzero)
      .gradient(kNotDifferentiable)
      .sample(small_numbers({{3, 4}}, {}))
      .sample(small_numbers({{5}}, {}));
  ops.declare<UniqueParams>("_npi_unique")
      .doc("The unique elements, or slices of an axis, in ascending order.")
      .input("data", "array of any shape")
      .names_its_input()
      .output("out", "vector, or data with fewer slices along axis")
      .output("index", "with return_index: index of the first occurrence of each, int64")
      .output("inverse", "with return_inverse: index of each element's value, int64")
      .output("counts", "with return_counts: number of occurrences of each, int64")
      .num_outputs(unique_outputs)
      .infer(infer_unique)
      .dynamic(run_unique)
      .gradient(kNotDifferentiable)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(small_numbers({{3, 4}}, {}))
      .sample(small_numbers({{9}}, {{"return_index", "True"}, {"return_inverse", "True"}, {"return_counts", "True"}}))
      .sample(small_numbers({{2, 6}}, {{"axis", "1"}, {"return_counts", "True"}}));
  ops.declare<BincountParams>("_npi_bincount")
      .doc("Number of occurrences of each number in a vector, or the sum of the weights at these positions.")
      .input("data", "vector of integers that are not negative")
      .optional_input("weights", "shape of data")
      .num_inputs([](const BincountParams& p) { return p.has_weights ? 2 : 1; })
      .output("out", "vector whose length follows from the largest number; int64, or the dtype of weights")
      .infer(infer_bincount)
      .dynamic(run_bincount)
      .gradient(
          [](const BincountParams& p, const GradientContext& g) -> Values {
            if (!p.has_weights || !g.output_grad(0)) return {};
            return {Value{}, call(kTake, {g.output_grad(0), g.input(0)}, {{"axis", 0}, {"mode", "clip"}})};
          },
          Saves::of({0}))
      .sample(counted({{6}}, {}))
      .sample(counted({{6}}, {{"minlength", "7"}}))
      .sample(counted({{6}, {6}}, {{"has_weights", "True"}}));
  ops.declare<SearchParams>("_npi_searchsorted")
      .doc("The indices at which values would be inserted into a sorted vector.")
      .input("a", "vector in ascending order")
      .input("v", "array of any shape, dtype of a")
      .output("out", "shape of v, int64")
      .infer([](const SearchParams&, InferContext& c) {
        c.unify_dtypes({0, 1}, {});
        c.set_out_dtype(0, DType::kInt64);
        c.set_out_shape(0, c.in_shape(1));
        if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() != 1)
          throw ShapeError({.input = "a", .expected = "a vector", .given = c.in_shape(0).str()});
      })
      .cpu(run_searchsorted)
      .any_device()
      .gradient(kNotDifferentiable)
      .sample({{1}, {2, 3}})
      .sample({{1}, {4}}, {{"right", "True"}});
}

}  // namespace hybridnet::ops
