// Random numbers of NumPy's interface: a parameter is a number, or an array that broadcasts with the others. The
// standard random numbers do not depend on the parameters, so the parameters have gradients (except the shape of
// gamma).
#include <algorithm>
#include <array>
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

const OpRef kUniform{"_random_uniform"}, kUniformLike{"_random_uniform_like"}, kNormal{"_random_normal"},
    kNormalLike{"_random_normal_like"}, kExponential{"_random_exponential"},
    kExponentialLike{"_random_exponential_like"}, kGamma{"_random_gamma"}, kSampleGamma{"_sample_gamma"},
    kZeros{"_npi_zeros"}, kBroadcastTo{"_npi_broadcast_to"}, kLog{"log"}, kExp{"exp"}, kExpm1{"expm1"}, kSqrt{"sqrt"},
    kPower{"broadcast_power"}, kPowerScalar{"_power_scalar"}, kSigmoid{"sigmoid"}, kLesser{"broadcast_lesser"},
    kLesserScalar{"_lesser_scalar"}, kRandint{"_random_randint"}, kChecked{"_checked_parameter"};

using ops::operator+, ops::operator*, ops::operator/;  // in addition to the operators for parameters below
using Number = std::optional<double>;

// The shape, context and dtype of the result.
struct Draw {
  std::optional<Tuple> size;  // None: the shape that the arrays among the parameters broadcast to
  std::string ctx;
  DType dtype = kDefaultFloat;
};

// The valid values of a parameter.
enum class Range : int32_t { kAny, kNotNegative, kPositive, kProbability };

bool fits(Range range, double value) {
  switch (range) {
    case Range::kAny:
      return true;
    case Range::kNotNegative:
      return value >= 0.0;
    case Range::kPositive:
      return value > 0.0;
    case Range::kProbability:
      return value >= 0.0 && value <= 1.0;
  }
  return false;
}

const char* range_name(Range range) {
  switch (range) {
    case Range::kAny:
      return "a number";
    case Range::kNotNegative:
      return "a number that is not negative";
    case Range::kPositive:
      return "a positive number";
    case Range::kProbability:
      return "a probability in [0, 1]";
  }
  return "";
}

void require(const char* name, const Number& number, bool is_right, const char* expected) {
  if (number && !is_right) throw ParamError({.input = name, .expected = expected, .given = AttrValue(*number).str()});
}

void require(const char* name, const Number& number, Range range) {
  if (number) require(name, number, fits(range, *number), range_name(range));
}

// Parameters of the operator that returns an array of parameters if all its elements are in range.
struct CheckedParams {
  std::string name;
  int32_t range;
  static void describe(ParamSchema<CheckedParams>& schema) {
    schema.field("name", &CheckedParams::name).default_value("").doc("Name of the parameter, for errors.");
    schema.field("range", &CheckedParams::range)
        .default_value(0)
        .range(0, 3)
        .doc("0: any number, 1: not negative, 2: positive, 3: from 0 to 1.");
  }
};

void run_checked(const CheckedParams& p, const KernelArgs& a) {
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* begin = a.in[0].as<T>();
    const T* end = begin + a.in[0].size();
    const auto range = static_cast<Range>(p.range);
    const T* wrong = std::find_if(begin, end, [=](T v) { return !fits(range, static_cast<double>(v)); });
    if (wrong != end)
      throw ValueError({.input = p.name,
                        .expected = range_name(range) + std::string(" everywhere"),
                        .given = AttrValue(static_cast<double>(*wrong)).str()});
    std::copy(begin, end, a.out[0].as<T>());
  });
}

// A parameter: a number or an array.
struct Parameter {
  Number number;
  Value array;
};

struct Given {
  const char* name;
  Number number;  // None: an array
  Range range;
};

// The arrays among the parameters, in the dtype of the result and, if given, in its shape.
std::vector<Parameter> parameters_of(std::initializer_list<Given> all, const Values& in, const Draw& draw) {
  std::vector<Parameter> result;
  size_t next = 0;
  for (const auto& [name, number, range] : all) {
    if (number) {
      result.push_back({number, {}});
      continue;
    }
    Value array = cast(in.at(next++), draw.dtype);
    if (range != Range::kAny) array = call(kChecked, {array}, {{"name", name}, {"range", static_cast<int64_t>(range)}});
    if (draw.size) array = call(kBroadcastTo, {array}, {{"shape", AttrValue(*draw.size)}});
    result.push_back({{}, array});
  }
  return result;
}

// An array with the shape of the result; null if all parameters are numbers.
Value shaped_like(const std::vector<Parameter>& parameters) {
  Value result;
  for (const Parameter& p : parameters)
    if (p.array) result = result ? zeros_like(result) + zeros_like(p.array) : p.array;
  return result ? stop_gradient(result) : result;
}

Value draw_of_shape(const OpRef& op, const Draw& draw, Attrs attrs) {
  const Shape shape = draw.size.value_or(Tuple::scalar());
  const AttrValue dtype(dtype_name(draw.dtype)), ctx(draw.ctx);
  if (shape.size() == 0) return call(kZeros, {}, {{"shape", AttrValue(shape)}, {"dtype", dtype}, {"ctx", ctx}});
  const Shape drawn = shape.ndim() == 0 ? Shape{1} : shape;
  const auto* first = attrs.begin();
  const Value numbers =
      attrs.size() == 2
          ? call(op, {}, {{"shape", AttrValue(drawn)}, {"dtype", dtype}, {"ctx", ctx}, first[0], first[1]})
          : call(op, {}, {{"shape", AttrValue(drawn)}, {"dtype", dtype}, {"ctx", ctx}});
  return literal_reshape(numbers, shape);
}

// Random numbers of a distribution's standard form, one per element of the result.
Value standard(const OpRef& op, const OpRef& like, const std::vector<Parameter>& parameters, const Draw& draw) {
  const Value shape = shaped_like(parameters);
  return shape ? call(like, {shape}) : draw_of_shape(op, draw, {});
}

Value operator*(const Value& a, const Parameter& p) { return p.array ? a * p.array : a * *p.number; }
Value operator/(const Value& a, const Parameter& p) { return p.array ? a / p.array : a / *p.number; }
Value operator+(const Value& a, const Parameter& p) { return p.array ? a + p.array : a + *p.number; }

bool only_numbers(const std::vector<Parameter>& parameters) { return parameters[0].number && parameters[1].number; }

// ------------------------------------------------------------------------------------------- two parameters
struct Form {
  std::array<const char*, 2> names, docs;
  const char* doc;
  std::array<Range, 2> ranges = {Range::kAny, Range::kNotNegative};
};

struct Uniform {
  static constexpr bool kHasDtype = true;
  static constexpr Form kForm{{"low", "high"},
                              {"Lower bound, inclusive.", "Upper bound, exclusive."},
                              "Uniformly distributed numbers.",
                              {Range::kAny, Range::kAny}};
  static Value draw(const std::vector<Parameter>& p, const Draw& d) {
    if (only_numbers(p) && *p[0].number <= *p[1].number)
      return draw_of_shape(kUniform, d, {{"low", *p[0].number}, {"high", *p[1].number}});
    const Value u = standard(kUniform, kUniformLike, p, d);
    return u * p[1] + (1.0 - u) * p[0];
  }
};

struct Normal {
  static constexpr bool kHasDtype = true;
  static constexpr Form kForm{
      {"loc", "scale"}, {"Mean.", "Standard deviation, not negative."}, "Normally distributed numbers."};
  static Value draw(const std::vector<Parameter>& p, const Draw& d) {
    if (only_numbers(p)) return draw_of_shape(kNormal, d, {{"loc", *p[0].number}, {"scale", *p[1].number}});
    return standard(kNormal, kNormalLike, p, d) * p[1] + p[0];
  }
};

struct Gumbel {
  static constexpr bool kHasDtype = false;
  static constexpr Form kForm{{"loc", "scale"},
                              {"Mode.", "Spread, not negative."},
                              "Numbers of the Gumbel distribution, that of largest values."};
  static Value draw(const std::vector<Parameter>& p, const Draw& d) {
    return -call(kLog, {standard(kExponential, kExponentialLike, p, d)}) * p[1] + p[0];
  }
};

struct Logistic {
  static constexpr bool kHasDtype = false;
  static constexpr Form kForm{
      {"loc", "scale"}, {"Mean.", "Spread, not negative."}, "Numbers of the logistic distribution."};
  // The logit of exp(-e) for exponential e.
  static Value draw(const std::vector<Parameter>& p, const Draw& d) {
    return -call(kLog, {call(kExpm1, {standard(kExponential, kExponentialLike, p, d)})}) * p[1] + p[0];
  }
};

struct Gamma {
  static constexpr bool kHasDtype = true;
  static constexpr Form kForm{{"shape", "scale"},
                              {"Shape, positive. It has no gradient.", "Scale, not negative."},
                              "Gamma distributed numbers.",
                              {Range::kPositive, Range::kNotNegative}};
  static Value draw(const std::vector<Parameter>& p, const Draw& d) {
    const Value like = shaped_like(p);
    if (!like) return draw_of_shape(kGamma, d, {{"alpha", *p[0].number}, {"beta", 1.0}}) * p[1];
    const Value one = ones_like(like), alpha = stop_gradient(one * p[0]);
    return call(kSampleGamma, {alpha, one}, {{"dtype", dtype_name(d.dtype)}}) * p[1];
  }
};

template <typename D>
struct TwoParams {
  Number first, second;
  std::optional<Tuple> size;
  std::string ctx;
  DType dtype = kDefaultFloat;
  static void describe(ParamSchema<TwoParams>& schema) {
    schema.field(D::kForm.names[0], &TwoParams::first).doc(D::kForm.docs[0]);
    schema.field(D::kForm.names[1], &TwoParams::second).doc(D::kForm.docs[1]);
    schema.field("size", &TwoParams::size)
        .none_by_default()
        .doc("Shape of the result; None: the common shape of the arrays.");
    describe_ctx<TwoParams>(schema);
    if constexpr (D::kHasDtype)
      schema.field("dtype", &TwoParams::dtype).default_value("float32").doc("float16, float32 or float64.");
    schema.check([](const TwoParams& p) {
      require(D::kForm.names[0], p.first, D::kForm.ranges[0]);
      require(D::kForm.names[1], p.second, D::kForm.ranges[1]);
      if (!is_floating(p.dtype))
        throw ParamError({.input = "dtype", .expected = kFloating.str(), .given = dtype_name(p.dtype)});
    });
  }
};

template <typename D>
Values two_rule(const TwoParams<D>& p, const Values& in) {
  const Draw draw{p.size, p.ctx, p.dtype};
  const auto& [first, second] = D::kForm.names;
  const auto& [first_range, second_range] = D::kForm.ranges;
  return {D::draw(parameters_of({{first, p.first, first_range}, {second, p.second, second_range}}, in, draw), draw)};
}

Shape broadcast_shape(const Values& in) {
  Value result = in[0];
  for (size_t i = 1; i < in.size(); ++i) result = zeros_like(result) + zeros_like(in[i]);
  return spec_of(result).shape;
}

// Draws `size` numbers for every element of the arrays.
template <typename D>
Values repeated_rule(const TwoParams<D>& p, const Values& in) {
  TwoParams<D> whole = p;
  Values arrays;
  for (const Value& a : in) arrays.push_back(cast(a, p.dtype));
  if (!arrays.empty()) {
    Tuple shape = p.size.value_or(Tuple::scalar());
    for (const int64_t size : broadcast_shape(arrays)) shape.push_back(size);
    whole.size = shape;
  }
  return two_rule<D>(whole, arrays);
}

Sample drawn(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs, bool smooth = true) {
  Sample s;
  s.inputs = std::move(inputs);
  s.attrs = std::move(attrs);
  s.low = 0.5;
  s.high = 1.5;
  s.check_gradient = smooth;
  if (!smooth) s.note = "the drawn number jumps if the parameter changes";
  return s;
}

template <typename D>
auto declare_two(OpRegistry& ops, const std::string& name, Values (*rule)(const TwoParams<D>&, const Values&)) {
  auto op = ops.declare<TwoParams<D>>(name);
  const auto [first, second] = D::kForm.names;
  const bool smooth = !std::is_same_v<D, Gamma>;
  op.doc(D::kForm.doc)
      .optional_input("input1", std::string(first) + ", or else " + second + ", as an array")
      .optional_input("input2", std::string(second) + " as an array if both are arrays")
      .num_inputs([](const TwoParams<D>& p) { return int{!p.first} + int{!p.second}; })
      .output("out", "the parameters' common shape, or size")
      .random()
      .compose(rule)
      .sample(std::vector<Shape>{}, {{first, "0.5"}, {second, "1.5"}, {"size", "(2, 3)"}})
      .sample(drawn({{2, 1}, {3}}, {{first, "None"}, {second, "None"}}, smooth))
      .sample(drawn({{2, 3}}, {{first, "0.5"}, {second, "None"}}))
      .sample(drawn({{3}}, {{first, "None"}, {second, "1.5"}, {"size", "(2, 3)"}}, smooth));
  return op;
}

// ------------------------------------------------------------------------------------------- one parameter
struct Exponential {
  static constexpr const char *kName = "exponential", *kParameter = "scale",
                              *kDoc = "Exponentially distributed numbers.", *kMeaning = "Mean, not negative.";
  static constexpr Range kRange = Range::kNotNegative;
  static Value shape(const Value& e, const Parameter& scale) { return e * scale; }
};

struct Rayleigh {
  static constexpr const char *kName = "rayleigh", *kParameter = "scale",
                              *kDoc = "Numbers of the Rayleigh distribution.", *kMeaning = "Mode, not negative.";
  static constexpr Range kRange = Range::kNotNegative;
  static Value shape(const Value& e, const Parameter& scale) { return call(kSqrt, {e * 2.0}) * scale; }
};

struct Weibull {
  static constexpr const char *kName = "weibull", *kParameter = "a",
                              *kDoc = "Numbers of the Weibull distribution of scale 1.", *kMeaning = "Shape, positive.";
  static constexpr Range kRange = Range::kPositive;
  static Value shape(const Value& e, const Parameter& a) {
    return a.array ? call(kPower, {e, 1.0 / a.array}) : call(kPowerScalar, {e}, {{"scalar", 1.0 / *a.number}});
  }
};

struct Pareto {
  static constexpr const char *kName = "pareto", *kParameter = "a",
                              *kDoc = "Numbers of the Pareto II (Lomax) distribution of scale 1.",
                              *kMeaning = "Shape, positive.";
  static constexpr Range kRange = Range::kPositive;
  static Value shape(const Value& e, const Parameter& a) { return call(kExpm1, {e / a}); }
};

struct Power {
  static constexpr const char *kName = "powerd", *kParameter = "a",
                              *kDoc = "Numbers in [0, 1] whose density is a x^(a - 1).",
                              *kMeaning = "Exponent, positive.";
  static constexpr Range kRange = Range::kPositive;
  static Value shape(const Value& e, const Parameter& a) { return call(kExp, {-e / a}); }
};

template <typename D>
struct OneParams {
  Number parameter;
  std::optional<Tuple> size;
  std::string ctx;
  static void describe(ParamSchema<OneParams>& schema) {
    FieldBuilder field = schema.field(D::kParameter, &OneParams::parameter);
    field.doc(D::kMeaning);
    if (D::kRange == Range::kNotNegative)
      field.default_value(1.0);
    else
      field.none_by_default();
    schema.field("size", &OneParams::size).none_by_default().doc("Shape of the result; None: the shape of the array.");
    describe_ctx<OneParams>(schema);
    schema.check([](const OneParams& p) { require(D::kParameter, p.parameter, D::kRange); });
  }
};

template <typename D>
Values one_rule(const OneParams<D>& p, const Values& in) {
  const Draw draw{p.size, p.ctx, kDefaultFloat};
  const std::vector<Parameter> parameters = parameters_of({{D::kParameter, p.parameter, D::kRange}}, in, draw);
  return {D::shape(standard(kExponential, kExponentialLike, parameters, draw), parameters[0])};
}

template <typename D>
OpBuilder<OneParams<D>> declare_one(OpRegistry& ops) {
  auto op = ops.declare<OneParams<D>>(std::string("_npi_") + D::kName);
  op.doc(D::kDoc)
      .optional_input("input1", std::string(D::kParameter) + " as an array")
      .num_inputs([](const OneParams<D>& p) { return int{!p.parameter}; })
      .output("out", "float32; the parameter's shape, or size")
      .random()
      .compose(one_rule<D>)
      .sample(std::vector<Shape>{}, {{D::kParameter, "1.5"}, {"size", "(2, 3)"}})
      .sample(drawn({{2, 3}}, {{D::kParameter, "None"}}));
  return op;
}

// ------------------------------------------------------------------------------------------------ integers
struct RandintParams {
  int64_t low, high;
  std::optional<Tuple> shape;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<RandintParams>& schema) {
    schema.field("low", &RandintParams::low).doc("Smallest number.");
    schema.field("high", &RandintParams::high).doc("One above the largest number.");
    schema.field("shape", &RandintParams::shape).none_by_default().doc("Shape of the result; None: one number, ().");
    describe_ctx<RandintParams>(schema);
    schema.field("dtype", &RandintParams::dtype).default_value("int32").doc("A whole dtype.");
    schema.check([](const RandintParams& p) {
      require("high", static_cast<double>(p.high), p.high > p.low, "a number above low");
      if (is_floating(p.dtype) || p.dtype == DType::kBool)
        throw ParamError({.input = "dtype", .expected = "a whole dtype", .given = dtype_name(p.dtype)});
    });
  }
};

Values randint_rule(const RandintParams& p, const Values&) {
  const DType drawn = p.dtype == DType::kInt32 ? DType::kInt32 : DType::kInt64;
  const Value numbers = draw_of_shape(kRandint, {p.shape, p.ctx, drawn}, {{"low", p.low}, {"high", p.high}});
  return {cast(numbers, p.dtype)};
}

// ------------------------------------------------------------------------------------------- yes or no
struct BernoulliParams {
  Number prob, logit;
  std::optional<Tuple> size;
  std::string ctx;
  DType dtype;
  bool is_logit;
  static void describe(ParamSchema<BernoulliParams>& schema) {
    schema.field("prob", &BernoulliParams::prob).doc("Probability of 1, if is_logit is false; None: an array.");
    schema.field("logit", &BernoulliParams::logit)
        .doc("Logit of the probability of 1, if is_logit is true; None: an array.");
    schema.field("size", &BernoulliParams::size)
        .none_by_default()
        .doc("Shape of the result; None: the shape of the array.");
    describe_ctx<BernoulliParams>(schema);
    schema.field("dtype", &BernoulliParams::dtype).default_value("float32").doc("Dtype of the result.");
    schema.field("is_logit", &BernoulliParams::is_logit).doc("Whether logit is used instead of prob.");
    schema.check([](const BernoulliParams& p) {
      if (!p.is_logit) require("prob", p.prob, Range::kProbability);
    });
  }
  const Number& given() const { return is_logit ? logit : prob; }
};

Values bernoulli_rule(const BernoulliParams& p, const Values& in) {
  const Draw draw{p.size, p.ctx, kDefaultFloat};
  const Given given = p.is_logit ? Given{"logit", p.logit, Range::kAny} : Given{"prob", p.prob, Range::kProbability};
  const std::vector<Parameter> parameters = parameters_of({given}, in, draw);
  const Value u = standard(kUniform, kUniformLike, parameters, draw);
  if (parameters[0].array) {
    const Value prob = p.is_logit ? call(kSigmoid, {parameters[0].array}) : parameters[0].array;
    return {cast(call(kLesser, {u, prob}), p.dtype)};
  }
  const double prob = p.is_logit ? 1.0 / (1.0 + std::exp(-*p.logit)) : *p.prob;
  return {cast(call(kLesserScalar, {u}, {{"scalar", prob}}), p.dtype)};
}

}  // namespace

void register_numpy_distributions(OpRegistry& ops) {
  ops.declare<CheckedParams>("_checked_parameter")
      .doc("The data itself; raises ValueError if an element is not a valid parameter, when the result is waited for.")
      .input("data", "parameters of a distribution, floating")
      .output("out", "shape and dtype of data")
      .infer([](const CheckedParams&, InferContext& c) {
        c.unify_shapes();
        c.unify_dtypes();
      })
      .cpu(run_checked, kFloating)
      .may_raise()
      .gradient([](const CheckedParams&, const GradientContext& g) -> Values { return {g.output_grad(0)}; },
                Saves::nothing())
      .internal()
      .sample(drawn({{2, 3}}, {{"range", "2"}}))
      .sample(drawn({{2, 3}}, {}));
  declare_two<Uniform>(ops, "_npi_uniform", two_rule<Uniform>);
  declare_two<Normal>(ops, "_npi_normal", two_rule<Normal>).output_names(OutputNames::kNumbered);
  declare_two<Gumbel>(ops, "_npi_gumbel", two_rule<Gumbel>).output_names(OutputNames::kNumbered);
  declare_two<Logistic>(ops, "_npi_logistic", two_rule<Logistic>).output_names(OutputNames::kNumbered);
  declare_two<Gamma>(ops, "_npi_gamma", two_rule<Gamma>);
  declare_two<Uniform>(ops, "_npi_uniform_n", repeated_rule<Uniform>);
  declare_two<Normal>(ops, "_npi_normal_n", repeated_rule<Normal>).output_names(OutputNames::kNumbered);
  declare_one<Exponential>(ops).output_names(OutputNames::kNumbered);
  declare_one<Rayleigh>(ops).output_names(OutputNames::kNumbered);
  declare_one<Weibull>(ops).output_names(OutputNames::kNumbered);
  declare_one<Pareto>(ops).output_names(OutputNames::kNumbered);
  declare_one<Power>(ops);
  ops.declare<RandintParams>("_npi_random_randint")
      .doc("Uniformly distributed integers in [low, high).")
      .output("out", "shape given by the parameter")
      .random()
      .compose(randint_rule)
      .sample(std::vector<Shape>{}, {{"low", "-3"}, {"high", "4"}, {"shape", "(2, 3)"}});
  ops.declare<BernoulliParams>("_npi_bernoulli")
      .doc("1 with a probability given directly or by its logit, else 0.")
      .optional_input("input1", "prob or logit as an array")
      .num_inputs([](const BernoulliParams& p) { return int{!p.given()}; })
      .output("out", "the parameter's shape, or size")
      .random()
      .compose(bernoulli_rule)
      .sample(std::vector<Shape>{}, {{"prob", "0.3"}, {"logit", "None"}, {"is_logit", "False"}, {"size", "(2, 3)"}})
      .sample(drawn({{2, 3}}, {{"prob", "None"}, {"logit", "None"}, {"is_logit", "True"}}, false));
}

}  // namespace hybridnet::ops
