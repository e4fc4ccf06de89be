// Shape manipulation of NumPy's interface.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"
#include "ops/shape/concat_params.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

const OpRef kSqueeze{"squeeze"}, kConcat{"Concat"}, kStack{"stack"};

template <typename Schema, typename P>
void describe_newshape(Schema& schema, Tuple P::*newshape, std::string P::*order, const char* doc) {
  schema.field("newshape", newshape).doc(doc);
  schema.field("order", order).default_value("C").one_of({"C"}).doc("Row-major, the only supported order.");
}

struct ReshapeParams {
  Tuple newshape;
  std::string order;
  static void describe(ParamSchema<ReshapeParams>& schema) {
    describe_newshape(schema, &ReshapeParams::newshape, &ReshapeParams::order,
                      "Target shape, taken literally; one size may be -1, which is inferred.");
  }
};

struct NpxReshapeParams {
  Tuple newshape;
  std::string order;
  bool reverse;
  static void describe(ParamSchema<NpxReshapeParams>& schema) {
    describe_newshape(schema, &NpxReshapeParams::newshape, &NpxReshapeParams::order,
                      "Target shape; -1 is inferred, -2 copies a size, -3 drops a size of 1, -4 copies all the rest, "
                      "-5 merges two sizes, -6 splits one into the two that follow.");
    schema.field("reverse", &NpxReshapeParams::reverse)
        .default_value(false)
        .doc("Whether newshape and the array's shape are read from the right.");
  }
};

[[noreturn]] void wrong_newshape(const Tuple& newshape, const Shape& from, const std::string& because) {
  throw ShapeError({.input = "newshape",
                    .expected = "a shape of as many elements as " + from.str(),
                    .given = newshape.str(),
                    .because = because});
}

// Fills in the one size that is -1. Sizes of `from` are known.
Shape completed(const Tuple& newshape, Shape target, const Shape& from) {
  int open = -1;
  int64_t others = 1;
  for (int i = 0; i < target.ndim(); ++i) {
    if (target[i] >= 0) {
      others = checked_times(others, target[i], "newshape");
    } else if (target[i] != -1 || open >= 0) {
      wrong_newshape(newshape, from, target[i] != -1 ? "sizes are at least -1" : "only one size may be -1");
    } else {
      open = i;
    }
  }
  if (open >= 0) {
    if (others == 0 || from.size() % others != 0) wrong_newshape(newshape, from, "no size fits in place of -1");
    target[open] = from.size() / others;
  }
  if (target.size() != from.size()) wrong_newshape(newshape, from, "the sizes multiply up to another number");
  return target;
}

Tuple reversed(const Tuple& t) {
  Tuple r = Tuple::scalar();
  for (int i = t.ndim() - 1; i >= 0; --i) r.push_back(t[i]);
  return r;
}

// Applies npx.reshape's codes from the left; at most one -1 remains in the result.
class Codes {
 public:
  Codes(const Tuple& codes, const Shape& from) : codes_(codes), from_(from) {}

  Shape target() {
    for (int i = 0; i < codes_.ndim(); ++i) {
      const int64_t code = codes_[i];
      if (code == -6) {
        split(i);
        i += 2;
      } else {
        apply(code);
      }
    }
    return result_;
  }

 private:
  void apply(int64_t code) {
    switch (code) {
      case -1:
        result_.push_back(-1);
        if (at_ < from_.ndim()) ++at_;
        return;
      case -2:
        return result_.push_back(next("copies a size"));
      case -3:
        if (next("drops a size") != 1) wrong_newshape(codes_, from_, "-3 drops a size that is not 1");
        return;
      case -4:
        while (at_ < from_.ndim()) result_.push_back(from_[at_++]);
        return;
      case -5: {
        const int64_t first = next("merges two sizes");
        return result_.push_back(first * next("merges two sizes"));
      }
      default:
        if (code < 0) wrong_newshape(codes_, from_, "codes are -1 to -6");
        result_.push_back(code);
        if (at_ < from_.ndim()) ++at_;
    }
  }

  void split(int i) {
    const int64_t whole = next("splits a size");
    if (i + 2 >= codes_.ndim()) wrong_newshape(codes_, from_, "two sizes follow -6");
    int64_t a = codes_[i + 1], b = codes_[i + 2];
    if (a == -1 && b > 0) a = whole / b;
    if (b == -1 && a > 0) b = whole / a;
    if (a < 0 || b < 0 || checked_times(a, b, "newshape") != whole)
      wrong_newshape(codes_, from_, "the two sizes after -6 do not multiply up");
    result_.push_back(a);
    result_.push_back(b);
  }

  int64_t next(const char* what) {
    if (at_ >= from_.ndim()) wrong_newshape(codes_, from_, std::string("no size is left for the code that ") + what);
    return from_[at_++];
  }

  const Tuple& codes_;
  const Shape& from_;
  Shape result_ = Shape::scalar();
  int at_ = 0;
};

Shape target_of(const NpxReshapeParams& p, const Shape& from) {
  if (!p.reverse) return completed(p.newshape, Codes(p.newshape, from).target(), from);
  const Shape from_right = reversed(from);
  const Tuple codes = reversed(p.newshape);
  return reversed(completed(codes, Codes(codes, from_right).target(), from_right));
}

Shape target_of(const ReshapeParams& p, const Shape& from) { return completed(p.newshape, p.newshape, from); }

template <typename P>
auto declare_reshape(OpRegistry& ops, const char* name, const char* doc) {
  auto op = ops.declare<P>(name);
  op.doc(doc)
      .input("a", "any shape, any dtype")
      .output("out", "dtype of a, the elements in the same order")
      .infer([](const P& p, InferContext& c) {
        c.unify_dtypes();
        if (c.in_shape(0).known()) c.set_out_shape(0, target_of(p, c.in_shape(0)));
      })
      .cpu([](const P&, const KernelArgs& a) { copy_first_input(a); })
      .any_device()
      .view()
      .inplace(0, 0)
      .gradient(
          [](const P&, const GradientContext& g) -> Values {
            return {g.output_grad(0) ? literal_reshape(g.output_grad(0), g.input_spec(0).shape) : Value{}};
          },
          Saves::nothing());
  return op;
}

struct TransposeParams {
  std::optional<Tuple> axes;
  static void describe(ParamSchema<TransposeParams>& schema) {
    schema.field("axes", &TransposeParams::axes)
        .none_by_default()
        .doc("Axis i of the output is axis axes[i] of a; None: reversed order.");
  }
};

struct SqueezeParams {
  std::optional<Tuple> axis;
  static void describe(ParamSchema<SqueezeParams>& schema) {
    schema.field("axis", &SqueezeParams::axis).none_by_default().doc("Axes of size 1 to remove; None: all of them.");
  }
};

Values squeeze_rule(const SqueezeParams& p, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  if (shape.ndim() == 0 || (p.axis && p.axis->ndim() == 0)) return {in[0]};
  int left = 0;
  for (const int64_t size : shape) left += size != 1;
  if (p.axis) left = shape.ndim() - p.axis->ndim();
  return {without_axes_left(call(kSqueeze, {in[0]}, {{"axis", p.axis ? AttrValue(*p.axis) : AttrValue()}}), left)};
}

struct JoinParams {
  int32_t num_args;
  std::optional<int32_t> axis;
  static void describe(ParamSchema<JoinParams>& schema) {
    schema.field("num_args", &JoinParams::num_args).at_least(1).doc("Number of arrays.");
    schema.field("axis", &JoinParams::axis)
        .default_value(0)
        .doc("Axis along which arrays are joined; None: arrays are flattened first.");
  }
};

struct StackParams {
  int32_t num_args;
  int32_t axis;
  static void describe(ParamSchema<StackParams>& schema) {
    schema.field("num_args", &StackParams::num_args).at_least(1).doc("Number of arrays.");
    schema.field("axis", &StackParams::axis).default_value(0).doc("Position of the new axis.");
  }
};

Values stack_rule(const StackParams& p, const Values& in) {
  Values parts = in_common_dtype(in);
  if (spec_of(parts[0]).shape.ndim() > 0) return {call(kStack, parts, {{"axis", p.axis}})};
  normalize_axis(p.axis, 1);
  for (Value& part : parts) part = literal_reshape(part, Shape{1});  // the shape of classic scalar gradients
  return {call(kConcat, parts, {{"dim", 0}})};
}

Values concatenate_rule(const JoinParams& p, const Values& in) {
  Values parts = in_common_dtype(in);
  for (Value& part : parts) {
    if (p.axis && spec_of(part).shape.ndim() > 0) continue;
    if (!p.axis) part = literal_reshape(part, Shape{spec_of(part).shape.size()});
    if (spec_of(part).shape.ndim() == 0)
      throw ShapeError({.input = "data",
                        .expected = "arrays of at least one axis",
                        .given = "a scalar",
                        .fix = "use stack, or reshape(1)"});
  }
  const ConcatParams joined{.num_args = static_cast<int32_t>(parts.size()), .dim = p.axis.value_or(0)};
  return call_all(kConcat, parts, ParamSchema<ConcatParams>::box(joined));
}

}  // namespace

void register_numpy_shapes(OpRegistry& ops) {
  declare_reshape<ReshapeParams>(ops, "_np_reshape", "The same elements, in the same order, with another shape.")
      .sample({{2, 3, 4}}, {{"newshape", "(4, 6)"}})
      .sample({{2, 3, 4}}, {{"newshape", "(-1, 2)"}})
      .sample({Shape{1, 1}}, {{"newshape", "()"}})
      .sample({Shape{0, 4}}, {{"newshape", "(2, 0)"}});
  declare_reshape<NpxReshapeParams>(ops, "_npx_reshape",
                                    "The same elements, in the same order, with a shape given by sizes and codes.")
      .alias("_npi_reshape")
      .sample({{2, 3, 4}}, {{"newshape", "(-2, -1)"}})
      .sample({{2, 3, 4}}, {{"newshape", "(-5, -4)"}})
      .sample({{1, 6, 4}}, {{"newshape", "(-3, -6, 2, -1, -4)"}})
      .sample({{8, 3, 4}}, {{"newshape", "(-1, -2)"}, {"reverse", "True"}});
}

void register_numpy_axes(OpRegistry& ops) {
  ops.declare<TransposeParams>("_np_transpose")
      .doc("Permutes the axes.")
      .input("a", "any shape, any dtype")
      .output("out", "dtype of a, its sizes permuted")
      .compose([](const TransposeParams& p, const Values& in) -> Values {
        if (spec_of(in[0]).shape.ndim() == 0 && (!p.axes || p.axes->ndim() == 0)) return {in[0]};
        return {transpose(in[0], p.axes.value_or(Tuple::scalar()))};
      })
      .sample({{2, 3, 4}})
      .sample({{2, 3, 4}}, {{"axes", "(1, -1, 0)"}});
  ops.declare<SqueezeParams>("_np_squeeze")
      .doc("Removes axes of size 1.")
      .input("a", "any shape, any dtype")
      .output("out", "shape of a without the removed axes")
      .compose(squeeze_rule)
      .sample({{1, 3, 1}})
      .sample({{1, 3, 1}}, {{"axis", "(-1,)"}})
      .sample({Shape{1, 1}});
}

void register_numpy_joins(OpRegistry& ops) {
  ops.declare<JoinParams>("_npi_concatenate")
      .doc("Joins arrays along an existing axis.")
      .variadic_input("data", "num_args", "arrays of one rank; sizes except along axis are equal")
      .output("out", "the common dtype of the arrays")
      .mxnet_name("out")
      .compose(concatenate_rule)
      .sample({{2, 3}, {4, 3}}, {{"num_args", "2"}})
      .sample({{2, 3}, {2, 1}}, {{"num_args", "2"}, {"axis", "-1"}})
      .sample({{2, 3}, {2}}, {{"num_args", "2"}, {"axis", "None"}});
  ops.declare<StackParams>("_npi_stack")
      .doc("Joins arrays of one shape along a new axis.")
      .variadic_input("data", "num_args", "arrays of one shape")
      .output("out", "the common dtype of the arrays; one axis more")
      .compose(stack_rule)
      .sample({{2, 3}, {2, 3}}, {{"num_args", "2"}})
      .sample({{2, 3}, {2, 3}}, {{"num_args", "2"}, {"axis", "-1"}})
      .sample({Shape::scalar(), Shape::scalar()}, {{"num_args", "2"}});
}

}  // namespace hybridnet::ops
