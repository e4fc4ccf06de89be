#include "passes/stand_in.h"

#include <utility>

namespace hybridnet {
namespace {

void infer(const StandIn& p, InferContext& c) {
  std::vector<TensorSpec> in, out;
  for (int i = 0; i < c.num_in(); ++i) in.push_back(c.in(i));
  for (int i = 0; i < c.num_out(); ++i) out.push_back(c.out(i));
  InferContext inner(*p.op, in, out, c.train());
  p.op->infer(p.params->data(), inner);
  for (int i = 0; i < c.num_out(); ++i) {
    c.set_out_shape(i, out[static_cast<size_t>(i)].shape);
    c.set_out_dtype(i, out[static_cast<size_t>(i)].dtype);
  }
}

}  // namespace

std::unique_ptr<Op> make_stand_in_op(const std::string& name, const char* doc) {
  auto op = std::make_unique<Op>();
  op->name = name;
  op->schema = std::make_unique<ParamSchema<StandIn>>();
  OpBuilder<StandIn>(*op)
      .doc(doc)
      .variadic_input("data", "")
      .num_outputs([](const StandIn& p) { return p.op->num_outputs(p.params->data()); })
      .infer(infer)
      .gradient(kNotDifferentiable)
      .internal()
      .cost([](const StandIn& p, std::span<const TensorSpec> in, std::span<const TensorSpec> out) {
        return p.op->cost_ns(p.params->data(), in, out);
      });
  return op;
}

bool is_stand_in(const Op& op) { return dynamic_cast<const ParamSchema<StandIn>*>(op.schema.get()) != nullptr; }

ParamsPtr make_stand_in_params(StandIn params) { return ParamSchema<StandIn>::box(std::move(params)); }

bool same_stand_in(const StandIn& a, const StandIn& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.op->schema->equal(a.params->data(), b.params->data());
}

}  // namespace hybridnet
