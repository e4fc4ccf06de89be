// _npi_einsum: Einstein's summation convention, as a sequence of products of two arrays.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kDot{"dot"}, kBatchDot{"batch_dot"}, kDiag{"diag"}, kSum{"_np_sum"}, kMul{"broadcast_mul"};

// A letter, or kEllipsis + i for the i-th axis from the right of the axes of "...".
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 1000;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct EinsumParams {
  int32_t num_args;
  std::string subscripts;
  int32_t optimize;
  static void describe(ParamSchema<EinsumParams>& schema) {
    schema.field("num_args", &EinsumParams::num_args).at_least(1).doc("Number of arrays.");
    schema.field("subscripts", &EinsumParams::subscripts)
        .default_value("")
        .doc(
            "One letter per axis, the arrays separated by commas, '...' for further axes; then '->' and the axes of "
            "the result.");
    schema.field("optimize", &EinsumParams::optimize)
        .default_value(0)
        .doc("Order of the products. 0: from left to right; else the pair with the smallest product first.");
  }
};

// ------------------------------------------------------------------------------------------- subscripts
[[noreturn]] void wrong_subscripts(const std::string& subscripts, const std::string& expected,
                                   const std::string& because) {
  throw ParamError({.input = "subscripts", .expected = expected, .given = "'" + subscripts + "'", .because = because});
}

class Subscripts {
 public:
  Subscripts(const std::string& text, const Values& in) : text_(text) {
    std::string plain;
    std::copy_if(text.begin(), text.end(), std::back_inserter(plain), [](unsigned char c) { return !std::isspace(c); });
    const size_t arrow = plain.find("->");
    const std::vector<std::string> terms = split(plain.substr(0, arrow));
    if (terms.size() != in.size())
      wrong_subscripts(text, "as many terms as arrays", std::to_string(in.size()) + " arrays are given");
    for (const std::string& term : terms) ellipses_.push_back(ellipsis_axes(term, spec_of(in[ellipses_.size()]).shape));
    for (size_t i = 0; i < terms.size(); ++i) operands.push_back(parse(terms[i], ellipses_[i]));
    result = arrow == std::string::npos ? implied() : stated(plain.substr(arrow + 2));
  }

  std::vector<Labels> operands;
  Labels result;

 private:
  static std::vector<std::string> split(const std::string& terms) {
    std::vector<std::string> parts(1);
    for (const char c : terms) {
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    }
    return parts;
  }

  // The number of axes of "...".
  int ellipsis_axes(const std::string& term, const Shape& shape) const {
    const auto letters = static_cast<int>(std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
    const bool ellipsis = term.find("...") != std::string::npos;
    const int left = shape.ndim() - letters;
    if (left < 0 || (left > 0 && !ellipsis))
      wrong_subscripts(text_, "a letter for each axis", "term '" + term + "' meets an array of shape " + shape.str());
    return left;
  }

  Labels parse(const std::string& term, int ellipsis) const {
    Labels labels;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term.compare(i, 3, "...") == 0) {
        for (int axis = ellipsis - 1; axis >= 0; --axis) labels.push_back(kEllipsis + axis);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
        labels.push_back(term[i]);
      } else {
        wrong_subscripts(text_, "letters, ',', '...' and '->'", std::string("'") + term[i] + "' is none of these");
      }
    }
    return labels;
  }

  int widest_ellipsis() const { return *std::max_element(ellipses_.begin(), ellipses_.end()); }

  // The result's axes without an arrow: the axes of "...", then the letters that occur once, in alphabetical order.
  Labels implied() const {
    std::map<Label, int> counts;
    for (const Labels& labels : operands)
      for (const Label label : labels) ++counts[label];
    Labels out = parse("...", widest_ellipsis());
    for (const auto& [label, count] : counts)
      if (label < kEllipsis && count == 1) out.push_back(label);
    return out;
  }

  Labels stated(const std::string& term) const {
    Labels out = parse(term, widest_ellipsis());
    std::set<Label> seen;
    for (const Label label : out) {
      const bool given =
          std::any_of(operands.begin(), operands.end(), [&](const Labels& l) { return contains(l, label); });
      if (!given || !seen.insert(label).second)
        wrong_subscripts(text_, "letters of the arrays after '->', each once",
                         std::string("'") + static_cast<char>(label) + (given ? "' comes twice" : "' is new"));
    }
    if (widest_ellipsis() > 0 && term.find("...") == std::string::npos)
      wrong_subscripts(text_, "'...' after '->' too", "the axes that it stands for are not summed over");
    return out;
  }

  const std::string& text_;
  std::vector<int> ellipses_;
};

// ------------------------------------------------------------------------------------------- operands
struct Operand {
  Value value;
  Labels labels;

  int64_t size(size_t axis) const { return spec_of(value).shape[static_cast<int>(axis)]; }
  int axis_of(Label label) const {
    return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
};

// Replaces the axes of a letter that occurs twice in one array by their diagonal.
void take_diagonals(Operand& a) {
  for (size_t i = 0; i < a.labels.size(); ++i)
    for (size_t j = i + 1; j < a.labels.size(); ++j) {
      if (a.labels[i] != a.labels[j]) continue;
      if (a.size(i) != a.size(j))
        throw ShapeError({.input = "data",
                          .expected = "axes of one size for a letter that comes twice",
                          .given = spec_of(a.value).shape.str()});
      a.value = call(kDiag, {a.value}, {{"axis1", static_cast<int>(i)}, {"axis2", static_cast<int>(j)}});
      const Label label = a.labels[i];
      a.labels.erase(a.labels.begin() + static_cast<std::ptrdiff_t>(j));
      a.labels.erase(a.labels.begin() + static_cast<std::ptrdiff_t>(i));
      a.labels.push_back(label);
      return take_diagonals(a);
    }
}

void sum_away(Operand& a, const std::function<bool(Label)>& kept) {
  Tuple axes = Tuple::scalar();
  Labels left;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    if (kept(a.labels[i]))
      left.push_back(a.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.ndim() == 0) return;
  a.value = call(kSum, {a.value}, {{"axis", AttrValue(axes)}});
  a.labels = left;
}

// The operand with its axes in the order of these labels; it must have all of them.
Value arranged(const Operand& a, const Labels& order) {
  Tuple axes = Tuple::scalar();
  bool moved = false;
  for (const Label label : order) {
    moved = moved || a.axis_of(label) != axes.ndim();
    axes.push_back(a.axis_of(label));
  }
  return moved ? transpose(a.value, axes) : a.value;
}

class Contraction {
 public:
  Contraction(Values in, Subscripts subscripts) : result_(std::move(subscripts.result)) {
    for (size_t i = 0; i < in.size(); ++i) operands_.push_back({in[i], subscripts.operands[i]});
    for (Operand& a : operands_) take_diagonals(a);
    find_sizes();
    for (Operand& a : operands_) drop_ones(a);
  }

  Value run(bool smallest_first) {
    while (operands_.size() > 1) {
      const auto [first, second] = smallest_first ? smallest_pair() : std::pair<size_t, size_t>(0, 1);
      Operand a = take(first), b = take(second - 1);
      operands_.insert(operands_.begin() + static_cast<std::ptrdiff_t>(first), product(a, b));
    }
    Operand last = take(0);
    sum_away(last, [&](Label label) { return contains(result_, label); });
    return arranged(last, result_);
  }

 private:
  Operand take(size_t i) {
    Operand a = operands_[i];
    operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(i));
    return a;
  }

  void find_sizes() {
    for (const Operand& a : operands_)
      for (size_t i = 0; i < a.labels.size(); ++i) {
        int64_t& size = sizes_.try_emplace(a.labels[i], 1).first->second;
        const int64_t own = a.size(i);
        if (own != 1 && size != 1 && own != size)
          throw ShapeError({.input = "data",
                            .expected = "one size for all axes of a letter, or 1",
                            .given = std::to_string(size) + " and " + std::to_string(own)});
        if (own != 1) size = own;
      }
  }

  // Removes axes of size 1: without such an axis, the array is broadcast along the label.
  void drop_ones(Operand& a) {
    Labels left;
    Shape shape = Shape::scalar();
    for (size_t i = 0; i < a.labels.size(); ++i) {
      if (a.size(i) != sizes_[a.labels[i]]) continue;
      left.push_back(a.labels[i]);
      shape.push_back(a.size(i));
    }
    a.value = literal_reshape(a.value, shape);
    a.labels = left;
  }

  // True if the result or another operand has the label.
  bool needed(Label label) const {
    return contains(result_, label) ||
           std::any_of(operands_.begin(), operands_.end(), [&](const Operand& a) { return contains(a.labels, label); });
  }

  int64_t size_of(const Labels& labels) const {
    int64_t size = 1;
    for (const Label label : labels) size *= sizes_.at(label);
    return size;
  }

  // Number of elements of the product of two operands.
  double product_size(size_t first, size_t second) const {
    std::set<Label> labels;
    for (const size_t i : {first, second})
      for (const Label label : operands_[i].labels) {
        bool read = contains(result_, label);
        for (size_t k = 0; k < operands_.size(); ++k)
          read = read || (k != first && k != second && contains(operands_[k].labels, label));
        if (read) labels.insert(label);
      }
    double size = 1;
    for (const Label label : labels) size *= static_cast<double>(sizes_.at(label));
    return size;
  }

  std::pair<size_t, size_t> smallest_pair() const {
    std::pair<size_t, size_t> best(0, 1);
    for (size_t i = 0; i < operands_.size(); ++i)
      for (size_t k = i + 1; k < operands_.size(); ++k)
        if (product_size(i, k) < product_size(best.first, best.second)) best = {i, k};
    return best;
  }

  // Labels of a that are in b (or not, by `shared`) and are needed later (or not, by `read`).
  Labels labels_of(const Operand& a, const Operand& b, bool shared, bool read) const {
    Labels found;
    for (const Label label : a.labels)
      if (contains(b.labels, label) == shared && needed(label) == read) found.push_back(label);
    return found;
  }

  Operand product(Operand a, Operand b) {
    sum_away(a, [&](Label label) { return needed(label) || contains(b.labels, label); });
    sum_away(b, [&](Label label) { return needed(label) || contains(a.labels, label); });
    const Labels batch = labels_of(a, b, true, true), summed = labels_of(a, b, true, false),
                 left = labels_of(a, b, false, true), right = labels_of(b, a, false, true);
    Operand out{{}, joined({batch, left, right})};
    Shape shape = Shape::scalar();
    for (const Label label : out.labels) shape.push_back(sizes_[label]);
    const int64_t n = size_of(batch), rows = size_of(left), inner = size_of(summed), columns = size_of(right);
    const auto as = [](const Operand& operand, const Labels& order, const Shape& to) {
      return literal_reshape(arranged(operand, order), to);
    };
    if (summed.empty()) {
      out.value = call(
          kMul, {as(a, joined({batch, left}), Shape{n, rows, 1}), as(b, joined({batch, right}), Shape{n, 1, columns})});
    } else if (batch.empty()) {
      out.value = call(kDot, {as(a, joined({left, summed}), Shape{rows, inner}),
                              as(b, joined({summed, right}), Shape{inner, columns})});
    } else {
      out.value = call(kBatchDot, {as(a, joined({batch, left, summed}), Shape{n, rows, inner}),
                                   as(b, joined({batch, summed, right}), Shape{n, inner, columns})});
    }
    out.value = literal_reshape(out.value, shape);
    return out;
  }

  static Labels joined(std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  std::vector<Operand> operands_;
  Labels result_;
  std::map<Label, int64_t> sizes_;
};

// Sums of bools are computed in int64, so that they cannot wrap around to 0.
Values einsum_rule(const EinsumParams& p, const Values& in) {
  const DType dtype = promoted(in), inner = dtype == DType::kBool ? DType::kInt64 : dtype;
  Values arrays;
  for (const Value& a : in) arrays.push_back(cast(a, inner));
  return {cast(Contraction(arrays, Subscripts(p.subscripts, in)).run(p.optimize != 0), dtype)};
}

}  // namespace

void register_einsum(OpRegistry& ops) {
  ops.declare<EinsumParams>("_npi_einsum")
      .doc("Sums of products by Einstein's convention: letters that are absent from the result are summed over.")
      .variadic_input("data", "num_args", "arrays of any shape; axes of size 1 broadcast")
      .output("out", "the axes of the letters after '->', in the common dtype")
      .compose(einsum_rule)
      .sample({{2, 3}, {3, 4}}, {{"num_args", "2"}, {"subscripts", "ij,jk"}})
      .sample({{3, 3}}, {{"num_args", "1"}, {"subscripts", "ii->i"}})
      .sample({{2, 3, 4}, {2, 4, 5}}, {{"num_args", "2"}, {"subscripts", "...ij,...jk->...ik"}})
      .sample({{2, 3}, {3, 4}, {4, 2}}, {{"num_args", "3"}, {"subscripts", "ab,bc,ca->"}, {"optimize", "1"}})
      .sample({{2, 3}, {2, 3}}, {{"num_args", "2"}, {"subscripts", "ij,ij->j"}});
}

}  // namespace hybridnet::ops
