// Operators that passes put in the place of others: they compute what those do by another algorithm, or over axes in
// another order. Their parameters hold no size but what the other operator's hold.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

struct StandIn {
  const Op* op = nullptr;  // in whose place, and its parameters
  ParamsPtr params;
  std::vector<uint8_t> inputs, outputs;  // _in_memory_order: whose axes are renumbered
};

// An operator with StandIn as parameters. Its specs and its cost are those of the other operator, what links it is left
// to the caller. It is not in the registry: only passes make it.
std::unique_ptr<Op> make_stand_in_op(const std::string& name, const char* doc);
bool is_stand_in(const Op& op);
ParamsPtr make_stand_in_params(StandIn params);
bool same_stand_in(const StandIn& a, const StandIn& b);

}  // namespace hybridnet
