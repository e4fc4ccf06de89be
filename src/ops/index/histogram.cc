// _histogram: the number of values in each bin.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/strided_copy.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct HistogramParams {
  std::optional<int32_t> bin_cnt;
  std::vector<double> range;
  static void describe(ParamSchema<HistogramParams>& schema) {
    schema.field("bin_cnt", &HistogramParams::bin_cnt)
        .none_by_default()
        .at_least(1)
        .doc("Number of bins of equal width; None: the second input holds the edges.");
    schema.field("range", &HistogramParams::range).default_value(AttrValue::List{}).doc("(low, high), for bin_cnt.");
    schema.check([](const HistogramParams& p) {
      if (p.bin_cnt && (p.range.size() != 2 || !(p.range[0] < p.range[1]))) {
        throw ParamError({.input = "range",
                          .expected = "(low, high) with low < high, for bin_cnt is given",
                          .given = std::to_string(p.range.size()) + " numbers"});
      }
    });
  }
};

void infer_histogram(const HistogramParams& p, InferContext& c) {
  c.set_out_dtype(0, DType::kInt64);
  if (p.bin_cnt) {
    c.unify_dtypes({0}, {1});
    c.set_out_shape(0, Shape({*p.bin_cnt}));
    c.set_out_shape(1, Shape({int64_t{*p.bin_cnt} + 1}));
    return;
  }
  c.unify_dtypes({1}, {1});
  c.set_in_shape(1, Shape::unknown(1));
  const int64_t edges = c.in_shape(1)[0];
  if (edges < 0) return;
  if (edges < 2) throw ShapeError({.input = "bins", .expected = "at least 2 edges", .given = c.in_shape(1).str()});
  c.set_out_shape(0, Shape({edges - 1}));
  c.set_out_shape(1, Shape({edges}));
}

// Bins are half open, except the last one, which includes its upper edge.
class Bins {
 public:
  Bins(Temporary<double> edges, bool even) : edges_(std::move(edges)) {
    const double width = edges_.back() - edges_.front();
    if (even && width > 0) per_unit_ = static_cast<double>(count()) / width;
  }
  int64_t count() const { return static_cast<int64_t>(edges_.size()) - 1; }

  int64_t of(double value) const {
    if (!(value >= edges_.front() && value <= edges_.back())) return -1;
    if (per_unit_ == 0) {
      const int64_t bin = std::upper_bound(edges_.begin(), edges_.end(), value) - edges_.begin() - 1;
      return std::min(bin, count() - 1);
    }
    // The quotient is rounded, so the edges decide.
    auto bin =
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>((value - edges_[0]) * per_unit_), count() - 1));
    while (bin > 0 && value < edges_[bin]) --bin;
    while (static_cast<int64_t>(bin) + 1 < count() && value >= edges_[bin + 1]) ++bin;
    return static_cast<int64_t>(bin);
  }

  template <typename T>
  void add(const T* data, int64_t n, int64_t* counts) const {
    const double element_ns = per_unit_ == 0 ? 30.0 : 3.0;
    parallel_for(n, element_ns, [&](int64_t begin, int64_t end) {
      Temporary<int64_t> own(static_cast<size_t>(count()), 0);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t bin = of(static_cast<double>(data[i]));
        if (bin >= 0) ++own[static_cast<size_t>(bin)];
      }
      for (size_t i = 0; i < own.size(); ++i)
        std::atomic_ref<int64_t>(counts[i]).fetch_add(own[i], std::memory_order_relaxed);
    });
  }

 private:
  Temporary<double> edges_;
  double per_unit_ = 0;  // 0: bins may differ in width
};

void run_histogram(const HistogramParams& p, const KernelArgs& a) {
  Temporary<double> edges(static_cast<size_t>(a.out[1].size()));
  if (p.bin_cnt) {
    const double width = (p.range[1] - p.range[0]) / *p.bin_cnt;
    for (size_t i = 0; i < edges.size(); ++i) edges[i] = p.range[0] + static_cast<double>(i) * width;
    edges.back() = p.range[1];
  } else {
    dispatch_dtype(a.in[1].dtype, [&](auto zero) {
      for (size_t i = 0; i < edges.size(); ++i) edges[i] = static_cast<double>(a.in[1].as<decltype(zero)>()[i]);
    });
  }
  dispatch_dtype(a.out[1].dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < edges.size(); ++i) a.out[1].as<T>()[i] = kernels::element_from<T>(edges[i]);
  });
  int64_t* counts = a.out[0].as<int64_t>();
  std::fill_n(counts, a.out[0].size(), int64_t{0});
  const Bins bins(std::move(edges), p.bin_cnt.has_value());
  dispatch_dtype(a.in[0].dtype, [&](auto zero) { bins.add(a.in[0].as<decltype(zero)>(), a.in[0].size(), counts); });
}

}  // namespace

void register_histogram(OpRegistry& ops) {
  ops.declare<HistogramParams>("_histogram")
      .alias("_npi_histogram")
      .doc("Counts the values of data that fall into each bin; the last bin includes its upper edge.")
      .input("data", "any shape, any dtype")
      .optional_input("bins", "rising edges of the bins, shape (n + 1,); not with bin_cnt")
      .num_inputs([](const HistogramParams& p) { return p.bin_cnt ? 1 : 2; })
      .names_its_input()
      .output("counts", "shape (n,), int64")
      .output("bin_edges", "shape (n + 1,)")
      .infer(infer_histogram)
      .cpu(run_histogram)
      .gradient(kNotDifferentiable)
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{4, 5}}, {{"bin_cnt", "5"}, {"range", "(-2, 2)"}});
}

}  // namespace hybridnet::ops
