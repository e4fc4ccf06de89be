// Nodes without variable inputs are computed once, when the graph is compiled.
#include <algorithm>

#include "hybridnet/ndarray.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

constexpr int64_t kLargest = 1 << 20;  // bytes of a result that is worth holding although its inputs are smaller

bool may_fold(const Graph& graph, const Node& node) {
  const Op& op = *node.op;
  if (op.random || op.effect || !op.total || op.data_dependent_shape || op.id < 0 || !node.subgraphs.empty())
    return false;
  int64_t in = 0, out = 0;
  for (const NodeEntry& input : node.inputs) {
    if (!input.node->is_variable() || !input.node->constant) return false;
    in += graph.spec(input).bytes();
  }
  for (const TensorSpec& spec : node.specs) out += spec.bytes();
  return out <= kLargest || out <= in;
}

std::vector<NDArray> evaluate(const Graph& graph, const Node& node) {
  std::vector<TensorSpec> in_specs;
  std::vector<TensorRef> in, out;
  for (const NodeEntry& input : node.inputs) {
    const NDArray array(Ref<ArrayImpl>(static_cast<ArrayImpl*>(input.node->constant.get())));
    array.wait_to_read();
    in_specs.push_back(array.spec());
    in.push_back(array.ref());
  }
  std::vector<NDArray> results;
  for (const TensorSpec& spec : node.specs) {
    results.push_back(NDArray::empty(spec));
    out.push_back(results.back().ref());
  }
  LinkContext context;
  context.params = node.params->data();
  context.in = in_specs;
  context.out = node.specs;
  context.train = graph.train();
  const Ref<Kernel> kernel = node.op->link(context);
  KernelArgs args;
  args.params = context.params;
  args.in = in;
  args.out = out;
  args.train = graph.train();
  const NDArray workspace = NDArray::empty(Shape{kernel->workspace_bytes()}, DType::kUInt8);
  args.workspace = workspace.data();
  kernel->run(args);
  return results;
}

Replacement fold(Graph& graph, Node& node) {
  bool used = false;
  for (int i = 0; i < static_cast<int>(node.specs.size()); ++i) used = used || graph.is_used(node, i);
  if (!used || !may_fold(graph, node)) return no_change();
  std::vector<NDArray> results;
  try {
    results = evaluate(graph, node);
  } catch (const Error&) {
    return no_change();  // left in place: the failure belongs to the run, where the caller sees it
  }
  Replacement replacement;
  for (size_t i = 0; i < results.size(); ++i) {
    NodeEntry entry;
    if (graph.is_used(node, static_cast<int>(i)))
      entry = {graph.add_constant(Ref<Object>(results[i].impl()), node.specs[i]), 0};
    replacement.outputs.push_back(entry);
  }
  return replacement;
}

}  // namespace

void register_fold_constants(RewriteDatabase& db) {
  // After the rules that know zeros and ones by the op that makes them (position 21), so that these still see them.
  db.local("fold_constants", [](Graph& g, Node& n) { return fold(g, n); })
      .tracks(Trait::kAny)
      .at(24)
      .tags({"fast_compile", "fast_run", "const_fold"});
}

}  // namespace hybridnet::passes
