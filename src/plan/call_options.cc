// From the settings that a user chooses to those that compiling and linking read.
#include "plan/compilation.h"

namespace hybridnet {

void CallOptions::describe(ParamSchema<CallOptions>& schema) {
  schema.field("name", &CallOptions::name).default_value("").doc("Block path, for errors and profiles.");
  schema.field("passes", &CallOptions::passes).default_value("").doc("Words that choose rewrites.");
  schema.field("remat", &CallOptions::remat).default_value("auto").doc("Values that backward computes again.");
  schema.field("precision", &CallOptions::precision)
      .default_value("")
      .doc("Floating type of products; '' or 'float32': the one of their inputs.");
  schema.field("static_alloc", &CallOptions::static_alloc).default_value(false).doc("Keeps arenas between calls.");
  schema.field("early_outputs", &CallOptions::early_outputs)
      .default_value(false)
      .doc("Readers of an output need not wait for the rest of the run.");
}

CallOptions CallOptions::parse(const std::vector<std::pair<std::string, AttrValue>>& given) {
  static const ParamSchema<CallOptions> schema;
  return schema.parse(given, "CachedOp")->as<CallOptions>();
}

namespace {

Query query_of(const CallOptions& asked) {
  Query query = chosen_query(asked.passes);
  if (asked.precision.empty() || asked.precision == "float32") return query;
  if (asked.precision != "bfloat16" && asked.precision != "float16")
    throw ParamError({.op = asked.name,
                      .input = "precision",
                      .expected = "'float32', 'bfloat16' or 'float16'",
                      .given = "'" + asked.precision + "'"});
  return query.including({asked.precision});  // the row of this name in stage `precision`
}

}  // namespace

CompileOptions::CompileOptions(const CallOptions& asked)
    : CallOptions(asked), query(query_of(asked)), remat_policy(RematPolicy::parse(asked.remat)) {}

Plan::Options CompileOptions::for_plan(Device device) const {
  Plan::Options plan;
  plan.name = name;
  plan.device = device;
  plan.keep_arena = static_alloc;
  plan.arenas = arenas;
  plan.kernels = kernels;
  plan.wakes_team = wakes_team;
  return plan;
}

}  // namespace hybridnet
