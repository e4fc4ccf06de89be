// _npi_norm: norms of vectors and matrices.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/numpy/factor_dtypes.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {

const OpRef kNorm{"norm"}, kAbs{"abs"}, kSum{"_np_sum"}, kMax{"_np_max"}, kMin{"_np_min"},
    kPowerScalar{"_power_scalar"}, kEqualScalar{"_equal_scalar"}, kNotEqualScalar{"_not_equal_scalar"},
    kSingularValues{"_np_singular_values"}, kRDivScalar{"_rdiv_scalar"};

// The values of `flag`, which are MXNet's.
enum Kind { kOfAllElements = -2, kOfVectors = -1, kOfMatrices = 0, kFrobenius = 1, kNuclear = 2 };

struct NormParams {
  double ord;
  std::optional<Tuple> axis;
  bool keepdims;
  int32_t flag;
  static void describe(ParamSchema<NormParams>& schema) {
    schema.field("ord", &NormParams::ord).default_value(2.0).doc("Order: a number, inf or -inf.");
    schema.field("axis", &NormParams::axis)
        .none_by_default()
        .doc(
            "One axis: norms of vectors; two: norms of matrices, rows and columns; None: the axes of an array of one "
            "or two axes.");
    schema.field("keepdims", &NormParams::keepdims).default_value(false).doc("Keep reduced axes with size 1.");
    schema.field("flag", &NormParams::flag)
        .default_value(-2)
        .range(-2, 2)
        .doc("-2: root of the sum of all squares; -1: ord decides; 0: matrix norm; 1: Frobenius; 2: nuclear.");
  }
};

// The reduction of one array to norms over its axes.
class Norm {
 public:
  Norm(const NormParams& p, const Value& a) : p_(p), a_(a), ndim_(spec_of(a).shape.ndim()) {
    if (p.axis)
      for (const int64_t axis : *p.axis) axes_.push_back(normalize_axis(axis, ndim_));
    else
      for (int i = 0; i < ndim_; ++i) axes_.push_back(i);
  }

  Value result() const {
    if (p_.flag == kOfAllElements) return euclidean();
    if (axes_.empty() || axes_.size() > 2 || (axes_.size() == 2 && axes_[0] == axes_[1]))
      throw ParamError({.input = "axis",
                        .expected = "one axis, or two different ones",
                        .given = p_.axis ? p_.axis->str() : "None for " + std::to_string(ndim_) + " axes"});
    if (p_.flag == kFrobenius) return euclidean();
    if (axes_.size() == 1 && p_.flag != kNuclear) return of_vectors();
    return of_matrices();
  }

 private:
  Value reduce(const OpRef& op, const Value& v, int axis) const {
    return call(op, {v}, {{"axis", AttrValue(Tuple({axis}))}, {"keepdims", p_.keepdims}});
  }

  Value euclidean() const {
    if (axes_.empty() || ndim_ == 0) return call(kAbs, {a_});
    Tuple axes = Tuple::scalar();
    for (const int axis : axes_) axes.push_back(axis);
    const Value norm = call(kNorm, {a_}, {{"axis", AttrValue(axes)}, {"keepdims", p_.keepdims}});
    return p_.keepdims ? norm : without_axes_left(norm, ndim_ - static_cast<int>(axes_.size()));
  }

  Value of_vectors() const {
    const int axis = axes_[0];
    if (p_.ord == 2) return euclidean();
    if (p_.ord == 0) return reduce(kSum, call(kNotEqualScalar, {a_}, {{"scalar", 0.0}}), axis);
    const Value magnitude = call(kAbs, {a_});
    if (std::isinf(p_.ord)) return reduce(p_.ord > 0 ? kMax : kMin, magnitude, axis);
    if (p_.ord == 1) return reduce(kSum, magnitude, axis);
    return root(reduce(kSum, call(kPowerScalar, {magnitude}, {{"scalar", p_.ord}}), axis));
  }

  // The gradient of the root is infinite at 0: it is set to 0 there. Powers below 0 sum to 0 if all are infinite.
  Value root(const Value& sum) const {
    const Value zero = stop_gradient(call(kEqualScalar, {sum}, {{"scalar", 0.0}}));
    const Value power = call(kPowerScalar, {sum + zero}, {{"scalar", 1.0 / p_.ord}});
    return p_.ord < 0 ? where(zero, call(kRDivScalar, {stop_gradient(sum)}, {{"scalar", 1.0}}), power) : power - zero;
  }

  Value of_matrices() const {
    const double order = std::abs(p_.ord);
    if (axes_.size() == 2 && p_.flag == kNuclear) return of_singular_values(kSum);
    const OpRef& extreme = p_.ord > 0 ? kMax : kMin;
    if (axes_.size() == 2 && order == 2) return of_singular_values(extreme);
    if (axes_.size() == 2 && (order == 1 || std::isinf(order))) {
      const int summed = order == 1 ? 0 : 1;
      return extreme_of_sums(extreme, axes_[static_cast<size_t>(summed)], axes_[static_cast<size_t>(1 - summed)]);
    }
    throw ParamError(
        {.input = "ord",
         .expected = "1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', and two axes",
         .given = (p_.flag == kNuclear ? "'nuc'" : AttrValue(p_.ord).str()) + " for " + std::to_string(axes_.size())});
  }

  Value extreme_of_sums(const OpRef& extreme, int summed, int over) const {
    const Value sums = reduce(kSum, call(kAbs, {a_}), summed);
    return reduce(extreme, sums, over - int{!p_.keepdims && over > summed});
  }

  Value of_singular_values(const OpRef& reduction) const {
    Tuple order = Tuple::scalar();
    for (int i = 0; i < ndim_; ++i)
      if (i != axes_[0] && i != axes_[1]) order.push_back(i);
    for (const int axis : axes_) order.push_back(axis);
    const DType dtype = dtype_of(a_);
    const Value values = call_all(kSingularValues, {in_factor_dtype(transpose(a_, order))})[1];
    Value result = in_result_dtype(call(reduction, {values}, {{"axis", AttrValue(Tuple({-1}))}}), dtype);
    if (!p_.keepdims) return result;
    for (const int axis : {std::min(axes_[0], axes_[1]), std::max(axes_[0], axes_[1])})
      result = expand_dims(result, axis);
    return result;
  }

  const NormParams& p_;
  const Value a_;
  const int ndim_;
  std::vector<int> axes_;
};

Values norm_rule(const NormParams& p, const Values& in) {
  return {Norm(p, cast(in[0], floating(dtype_of(in[0])))).result()};
}

}  // namespace

void register_numpy_norm(OpRegistry& ops) {
  ops.declare<NormParams>("_npi_norm")
      .doc("Norms of vectors or matrices.")
      .input("data", "array of any shape")
      .output("out", "the shape without the axes of the vectors or matrices, or with sizes 1 there (keepdims)")
      .compose(norm_rule)
      .output_names(OutputNames::kNumbered)
      .sample({{2, 3, 4}})
      .sample({{2, 3}}, {{"ord", "3"}, {"axis", "(1,)"}, {"flag", "-1"}})
      .sample({{2, 3}}, {{"ord", "1"}, {"axis", "(0,)"}, {"flag", "-1"}, {"keepdims", "True"}})
      .sample({{2, 3, 4}}, {{"ord", "-2"}, {"axis", "(2, 0)"}, {"flag", "0"}})
      .sample({{2, 3, 4}}, {{"ord", "inf"}, {"axis", "(0, 2)"}, {"flag", "0"}})
      .sample({{3, 3}}, {{"flag", "1"}})
      .sample({{3, 3}}, {{"flag", "2"}, {"keepdims", "True"}});
}

}  // namespace hybridnet::ops
