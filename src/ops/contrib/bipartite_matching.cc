// _contrib_bipartite_matching: pairs the rows and columns of a score matrix greedily, the best score first.
#include <algorithm>
#include <numeric>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct MatchingParams {
  bool is_ascend;
  double threshold;
  int32_t topk;
  static void describe(ParamSchema<MatchingParams>& schema) {
    schema.field("is_ascend", &MatchingParams::is_ascend)
        .default_value(false)
        .doc("Whether small scores are the better ones.");
    schema.field("threshold", &MatchingParams::threshold).doc("Scores must be better than this.");
    schema.field("topk", &MatchingParams::topk)
        .default_value(-1)
        .doc("Maximum number of pairs; not positive: no limit.");
  }
};

void infer_matching(const MatchingParams&, InferContext& c) {
  c.unify_dtypes();
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  const int n = data.ndim();
  if (n < 2)
    throw ShapeError(
        {.input = "data", .expected = "at least 2 dimensions (..., rows, columns)", .given = "shape " + data.str()});
  Shape out = Shape::unknown(n - 1);
  for (int i = 0; i + 1 < n; ++i) out[i] = data[i];
  c.set_out_shape(0, out);
  out[n - 2] = data[n - 1];
  c.set_out_shape(1, out);
}

template <typename T>
void match(const MatchingParams& p, const T* scores, int64_t rows, int64_t columns, T* row_mates, T* column_mates) {
  using A = accumulator_t<T>;
  const auto better = [&](A a, A b) { return p.is_ascend ? a < b : a > b; };
  std::fill_n(row_mates, rows, static_cast<T>(-1.0f));
  std::fill_n(column_mates, columns, static_cast<T>(-1.0f));
  Temporary<int64_t> order;  // only scores that pass the threshold: NaN has no order
  for (int64_t i = 0; i < rows * columns; ++i)
    if (better(static_cast<A>(scores[i]), static_cast<A>(p.threshold))) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const A a = static_cast<A>(scores[i]), b = static_cast<A>(scores[j]);
    return better(a, b) || (!better(b, a) && i < j);
  });
  Temporary<bool> row_taken(static_cast<size_t>(rows)), column_taken(static_cast<size_t>(columns));
  int64_t pairs = 0;
  for (int64_t i : order) {
    const int64_t r = i / columns, c = i % columns;
    if (row_taken[static_cast<size_t>(r)] || column_taken[static_cast<size_t>(c)]) continue;
    if (p.topk > 0 && pairs == p.topk) break;
    row_taken[static_cast<size_t>(r)] = column_taken[static_cast<size_t>(c)] = true;
    row_mates[r] = static_cast<T>(static_cast<A>(c));
    column_mates[c] = static_cast<T>(static_cast<A>(r));
    ++pairs;
  }
}

void run_matching(const MatchingParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const int64_t rows = s[s.ndim() - 2], columns = s[s.ndim() - 1], batch = s.size(0, s.ndim() - 2);
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(batch, 20.0 * static_cast<double>(rows * columns), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        match(p, a.in[0].as<T>() + b * rows * columns, rows, columns, a.out[0].as<T>() + b * rows,
              a.out[1].as<T>() + b * columns);
      }
    });
  });
}

}  // namespace

void register_bipartite_matching(OpRegistry& ops) {
  Sample s;
  s.inputs = {{2, 3, 4}};
  s.attrs = {{"threshold", "0.1"}};
  s.low = 0.0;
  s.check_gradient = false;
  s.note = "outputs are indices";
  Sample few = s;
  few.attrs = {{"threshold", "1.5"}, {"is_ascend", "True"}, {"topk", "2"}};
  ops.declare<MatchingParams>("_contrib_bipartite_matching")
      .doc(
          "Pairs of rows and columns: the best remaining score forms a pair, whose row and column are then removed. "
          "Gradients are zero.")
      .input("data", "scores (..., rows, columns)")
      .output("rows", "(..., rows): the column of each row, -1 if unpaired")
      .output("columns", "(..., columns): the row of each column, -1 if unpaired")
      .infer(infer_matching)
      .cpu(run_matching, kFloating)
      .gradient([](const MatchingParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .output_names(OutputNames::kNumberedSeveral)
      .sample(s)
      .sample(few);
}

}  // namespace hybridnet::ops
