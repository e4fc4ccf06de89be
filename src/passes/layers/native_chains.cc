// Marks fused chains over large arrays: linking may compile them to machine code (ops/fused/native_chain.h).
#include "op/c_forms.h"
#include "op/pointwise_program.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

constexpr int64_t kSmallest = 4096;  // elements: below, calls cost more than passes over a tile

// True for two steps with a form in C: they save a pass if they meet in one loop, which linking checks.
bool has_forms(const PointwiseProgram& program, DType dtype) {
  int forms = 0;
  for (const PointwiseProgram::Step& step : program.steps)
    forms += c_forms::expression(*step.op, step.params, dtype).has_value() ? 1 : 0;
  return forms >= 2;
}

}  // namespace

Replacement native_chains(Graph& graph, Node& node) {
  const auto& program = node.params->as<PointwiseProgram>();
  if (program.native || node.specs[0].shape.size() < kSmallest || !has_forms(program, node.specs[0].dtype))
    return no_change();
  PointwiseProgram marked = program;
  marked.native = true;
  const NodePtr made = graph.add(*node.op, ParamSchema<PointwiseProgram>::box(std::move(marked)), node.inputs, &node);
  Replacement all;
  for (uint32_t i = 0; i < node.specs.size(); ++i) {
    graph.set_format({made, i}, graph.format({NodePtr(&node), i}));
    all.outputs.emplace_back(made, i);
  }
  return all;
}

}  // namespace hybridnet::passes
