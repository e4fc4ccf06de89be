// `_with_sizes` and `_view_with_sizes` run another operator with parameters that follow from the shapes of inputs: a
// reshape to (batch of x, -1) in a graph that serves all batches. The inputs after the first num_data ones are read for
// their shapes alone. `_with_values` takes parameters from the values of inputs, so it runs when these are known: a
// graph is cut there.
//
// Files of other frameworks compute sizes in the graph; the importers turn such arithmetic into these operators.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/sized/size_template.h"

namespace hybridnet::ops {
namespace {

struct WithSizesParams {
  std::string op, attrs;
  int num_args = 0, num_data = 1, num_outputs = 1;
  static void describe(ParamSchema<WithSizesParams>& schema);
};

// Returns the operator to run. Files may name it, so it is one that checks its parameters.
const Op& inner_op(const WithSizesParams& p) {
  const Op& op = op_registry().at(p.op);
  const bool has_more = op.has_writebacks() || op.random || op.opaque || op.is_lazy || !op.subgraph_names.empty();
  if (!has_more && !op.resolve && !op.resolve_sizes && (!op.hidden || op.allowed_in_files)) return op;
  throw ParamError({.input = "op",
                    .expected = "a public operator that computes its outputs from its inputs alone",
                    .given = p.op,
                    .because = "states, random streams and bodies are not passed on"});
}

void require_count(const char* input, int given, int expected, const Op& op) {
  if (given == expected) return;
  throw ParamError({.input = input,
                    .expected = std::to_string(expected) + ", as many as '" + op.name + "' has with these parameters",
                    .given = std::to_string(given)});
}

// Parses the parameters and checks that the operator has the declared numbers of inputs and outputs with them.
Op::Resolved resolved(const WithSizesParams& p, const Op& op,
                      const std::vector<std::pair<std::string, std::string>>& texts) {
  ParamsPtr params = op.schema->parse(texts, op.name, true);
  require_count("num_data", p.num_data, op.num_inputs(params->data()), op);
  require_count("num_outputs", p.num_outputs, op.num_outputs(params->data()), op);
  return {&op, std::move(params), static_cast<size_t>(p.num_data)};
}

void check_counts(const WithSizesParams& p, int inputs) {
  if (p.num_data <= inputs) return;
  throw ParamError({.input = "num_data",
                    .expected = "at most " + std::to_string(inputs) + ", the number of inputs",
                    .given = std::to_string(p.num_data)});
}

void WithSizesParams::describe(ParamSchema<WithSizesParams>& schema) {
  schema.field("op", &WithSizesParams::op).doc("Name of the operator to run.");
  schema.field("attrs", &WithSizesParams::attrs).doc("Its parameters, with expressions over sizes: shape=({#0.0},-1).");
  schema.field("num_args", &WithSizesParams::num_args).default_value(0).hidden().doc("Number of inputs.");
  schema.field("num_data", &WithSizesParams::num_data)
      .default_value(1)
      .at_least(0)
      .doc("Number of inputs of the operator; later inputs are only read by attrs.");
  schema.field("num_outputs", &WithSizesParams::num_outputs)
      .default_value(1)
      .at_least(1)
      .doc("Number of outputs of the operator.");
}

std::vector<double> no_values(int) {
  throw ParamError(
      {.input = "attrs", .message = "sizes alone are known here", .fix = "use _with_values for values of arrays"});
}

// Throws ParamError for parameters that do not fit.
std::optional<Op::Resolved> resolve_sizes(const WithSizesParams& p, std::span<const TensorSpec> inputs) {
  const Op& op = inner_op(p);
  if (op.composed() || op.data_dependent_shape || !op.total)
    throw ParamError({.input = "op",
                      .expected = "an operator with a kernel that cannot fail",
                      .given = p.op,
                      .fix = "use _with_values, which runs every operator"});
  auto texts = SizeTemplate(p.attrs).fill(
      [&](int i) -> const Shape* {
        if (i < 0 || static_cast<size_t>(i) >= inputs.size())
          throw ParamError({.input = "attrs", .expected = "numbers of inputs", .given = std::to_string(i)});
        return &inputs[static_cast<size_t>(i)].shape;
      },
      no_values);
  if (!texts) return std::nullopt;
  return resolved(p, op, *texts);
}

// Dtypes do not depend on sizes: assumes sizes of 1 while the shapes are not known.
void infer_dtypes(const WithSizesParams& p, InferContext& c) {
  static const Shape ones({1, 1, 1, 1, 1, 1, 1, 1});
  const Op& op = inner_op(p);
  std::vector<TensorSpec> in, out(static_cast<size_t>(c.num_out()));
  for (int i = 0; i < p.num_data; ++i) in.push_back({Shape(), c.in_dtype(i)});
  try {
    const auto texts = SizeTemplate(p.attrs).fill([](int) { return &ones; }, no_values);
    InferContext inner(op, in, out, c.train());
    op.infer(resolved(p, op, *texts).params->data(), inner);
  } catch (const Error&) {  // the assumed sizes do not fit
    return;
  }
  for (int i = 0; i < c.num_out(); ++i) c.set_out_dtype(i, out[static_cast<size_t>(i)].dtype);
}

void infer(const WithSizesParams& p, InferContext& c) {
  check_counts(p, c.num_in());
  std::vector<TensorSpec> in, out;
  for (int i = 0; i < c.num_in(); ++i) in.push_back(c.in(i));
  for (int i = 0; i < c.num_out(); ++i) out.push_back(c.out(i));
  const std::optional<Op::Resolved> use = resolve_sizes(p, in);
  if (!use) return infer_dtypes(p, c);
  if (c.op().is_view && !use->op->is_view)
    throw ParamError({.input = "op",
                      .expected = "an operator that changes the shape alone",
                      .given = p.op,
                      .fix = "use _with_sizes"});
  InferContext inner(*use->op, std::span(in).first(static_cast<size_t>(p.num_data)), out, c.train());
  use->op->infer(use->params->data(), inner);
  for (int i = 0; i < p.num_data; ++i) {
    c.set_in_shape(i, inner.in_shape(i));
    c.set_in_dtype(i, inner.in_dtype(i));
  }
  for (int i = 0; i < c.num_out(); ++i) {
    c.set_out_shape(i, inner.out_shape(i));
    c.set_out_dtype(i, inner.out_dtype(i));
  }
}

class SizedKernel final : public Kernel {
 public:
  SizedKernel(Op::Resolved use, Ref<Kernel> kernel, int num_data)
      : use_(std::move(use)), kernel_(std::move(kernel)), num_data_(static_cast<size_t>(num_data)) {}
  void run(const KernelArgs& args) override {
    KernelArgs inner = args;
    inner.params = use_.params->data();
    inner.in = args.in.first(num_data_);
    kernel_->run(inner);
  }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  std::string description() const override { return use_.op->name; }

 private:
  Op::Resolved use_;
  Ref<Kernel> kernel_;
  size_t num_data_;
};

Ref<Kernel> link(const WithSizesParams& p, const LinkContext& c) {
  std::optional<Op::Resolved> use = resolve_sizes(p, c.in);
  if (!use) throw ShapeError({.message = "a size that the parameters need is not known"});
  LinkContext inner = c;
  inner.params = use->params->data();
  inner.in = c.in.first(static_cast<size_t>(p.num_data));
  if (!inner.in_format.empty()) inner.in_format = c.in_format.first(static_cast<size_t>(p.num_data));
  Ref<Kernel> kernel = use->op->link(inner);
  return Ref<Kernel>(new SizedKernel(std::move(*use), std::move(kernel), p.num_data));
}

// Shows the operator's rule its own inputs.
class InnerGradient final : public GradientContext {
 public:
  InnerGradient(const GradientContext& outer, int num_data) : outer_(outer), num_data_(num_data) {}
  int num_inputs() const override { return num_data_; }
  int num_outputs() const override { return outer_.num_outputs(); }
  Value input(int i) const override { return outer_.input(i); }
  Value output(int i) const override { return outer_.output(i); }
  Value output_grad(int i) const override { return outer_.output_grad(i); }
  const TensorSpec& input_spec(int i) const override { return outer_.input_spec(i); }
  const TensorSpec& output_spec(int i) const override { return outer_.output_spec(i); }
  bool wants(int i) const override { return outer_.wants(i); }
  bool train() const override { return outer_.train(); }
  RngKey rng() const override { return outer_.rng(); }

 private:
  const GradientContext& outer_;
  const int num_data_;
};

Values gradient(const WithSizesParams& p, const GradientContext& g) {
  std::vector<TensorSpec> in;
  for (int i = 0; i < g.num_inputs(); ++i) in.push_back(g.input_spec(i));
  const std::optional<Op::Resolved> use = resolve_sizes(p, in);
  const bool has_rule = use && use->op->differentiable();
  Values result = has_rule ? use->op->gradient(use->params->data(), InnerGradient(g, p.num_data)) : Values();
  result.resize(static_cast<size_t>(g.num_inputs()));
  return result;
}

Op::Resolved resolve(const WithSizesParams& p, std::span<const TensorRef> inputs) {
  check_counts(p, static_cast<int>(inputs.size()));
  const auto input = [&](int i) -> const TensorRef& {
    if (i < 0 || static_cast<size_t>(i) >= inputs.size())
      throw ParamError({.input = "attrs", .expected = "numbers of inputs", .given = std::to_string(i)});
    return inputs[static_cast<size_t>(i)];
  };
  const auto values_of = [&](int i) {
    const TensorRef& array = input(i);
    std::vector<double> values;
    dispatch_dtype(array.dtype, [&](auto zero) {
      const auto* first = array.as<decltype(zero)>();
      for (int64_t k = 0; k < array.size(); ++k) values.push_back(static_cast<double>(first[k]));
    });
    return values;
  };
  const Op& op = inner_op(p);
  auto texts = SizeTemplate(p.attrs).fill([&](int i) { return input(i).shape; }, values_of);
  return resolved(p, op, *texts);
}

OpBuilder<WithSizesParams> declare(OpRegistry& ops, const char* name) {
  OpBuilder<WithSizesParams> builder = ops.declare<WithSizesParams>(name);
  builder.variadic_input("data", "num_args", "the inputs of the operator `op`, then arrays that `attrs` reads")
      .output("output", "the outputs of the operator")
      .num_outputs([](const WithSizesParams& p) { return p.num_outputs; })
      .internal()
      .allowed_in_files();
  return builder;
}

}  // namespace

void register_with_sizes(OpRegistry& ops) {
  declare(ops, "_with_sizes")
      .doc("An operator with parameters that follow from the shapes of inputs.")
      .infer(infer)
      .any_device()
      .link(link, kAllDTypes)
      .gradient(gradient)
      .resolves_sizes(resolve_sizes)
      .sample({{2, 3}, {5, 4}}, {{"op", "broadcast_to"}, {"attrs", "shape=({#0.0},{#0.1})"}})
      .sample({{6, 3}, {5, 4}}, {{"op", "slice"}, {"attrs", "begin=({#1.0 4 -},0);end=({#1.0},{#1.1 2 //})"}});
  declare(ops, "_view_with_sizes")
      .doc("An operator that changes the shape alone, with parameters that follow from the shapes of inputs.")
      .infer(infer)
      .any_device()
      .link(link, kAllDTypes)
      .gradient(gradient)
      .resolves_sizes(resolve_sizes)
      .view()
      .inplace(0, 0)
      .sample({{4, 6}, {8, 3}}, {{"op", "_np_reshape"}, {"attrs", "newshape=({#1.0},-1)"}});
  declare(ops, "_with_values")
      .doc("An operator with parameters that are values of inputs; its shape is known when it runs.")
      .infer([](const WithSizesParams&, InferContext&) {})
      .resolves(resolve)
      .gradient(kNotDifferentiable)
      .sample(Sample{.inputs = {{4, 6}, {2}},
                     .attrs = {{"op", "_np_reshape"}, {"attrs", "newshape=({@1.0 0 *},-1)"}},
                     .check_gradient = false,
                     .note = "the operator that it runs has the gradient"});
}

}  // namespace hybridnet::ops
