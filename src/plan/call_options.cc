// From the settings that a user chooses to those that compiling and linking read.
#include "plan/compilation.h"

namespace hybridnet {

void CallOptions::describe(ParamSchema<CallOptions>& schema) {
  schema.field("name", &CallOptions::name).default_value("").doc("Block path, for errors and profiles.");
  schema.field("passes", &CallOptions::passes).default_value("").doc("Words that choose rewrites.");
  schema.field("remat", &CallOptions::remat).default_value("auto").doc("Values that backward computes again.");
  schema.field("static_alloc", &CallOptions::static_alloc).default_value(false).doc("Keeps arenas between calls.");
}

CallOptions CallOptions::parse(const std::vector<std::pair<std::string, AttrValue>>& given) {
  static const ParamSchema<CallOptions> schema;
  return schema.parse(given, "CachedOp")->as<CallOptions>();
}

CompileOptions::CompileOptions(const CallOptions& asked)
    : CallOptions(asked), query(chosen_query(asked.passes)), remat_policy(RematPolicy::parse(asked.remat)) {}

Plan::Options CompileOptions::for_plan() const {
  Plan::Options plan;
  plan.name = name;
  plan.keep_arena = static_alloc;
  plan.arenas = arenas;
  plan.kernels = kernels;
  plan.wakes_team = wakes_team;
  return plan;
}

}  // namespace hybridnet
