#include "hybridnet/plan.h"
#include "plan/graph_function.h"

namespace hybridnet {

struct CachedOp::Impl {
  Symbol symbol;
  Ref<GraphFunction> function;
};

CachedOp::CachedOp(Symbol symbol, CachedOpConfig config) : impl_(std::make_unique<Impl>()) {
  GraphDefinition definition;
  definition.inputs = symbol.list_inputs();
  definition.outputs = symbol.outputs;
  CompileOptions options;
  options.name = config.name;
  options.query = chosen_query(config.passes);
  options.keep_arena = config.static_alloc;
  impl_->function = make_ref<GraphFunction>(std::move(definition), std::move(options));
  impl_->symbol = std::move(symbol);
}

CachedOp::~CachedOp() = default;

std::vector<NDArray> CachedOp::call(std::span<const NDArray> inputs, std::span<const NDArray> out) {
  return impl_->function->call(inputs, out);
}

const Symbol& CachedOp::symbol() const { return impl_->symbol; }
size_t CachedOp::num_plans() const { return impl_->function->counts().plans; }
size_t CachedOp::num_linked() const { return impl_->function->counts().linked; }
size_t CachedOp::num_layouts() const { return impl_->function->counts().layouts; }
size_t CachedOp::num_rewritten() const { return impl_->function->counts().rewritten; }
std::string CachedOp::summary() const { return impl_->function->summary(); }
std::string CachedOp::plan_text() const { return impl_->function->plan_text(); }
std::vector<std::string> CachedOp::fired_rewrites() const { return impl_->function->fired_rewrites(); }
std::string CachedOp::graph_text() const { return impl_->function->graph_text(); }

}  // namespace hybridnet
