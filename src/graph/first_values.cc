#include "graph/first_values.h"

#include <string_view>

namespace hybridnet {
namespace {

// Initializers in the notation of MXNet's files.
constexpr const char *kZero = R"(["zero", {}])", *kOne = R"(["one", {}])";
struct FirstValue {
  std::string_view op;
  size_t input;
  const char* init;
};
constexpr FirstValue kFirstValues[] = {
    {"LeakyReLU", 1, R"(["Constant", {"value": 0.25}])"},
    {"UpSampling", 1, R"(["bilinear", {}])"},
    {"BatchNorm", 3, kZero},
    {"BatchNorm", 4, kOne},
    {"_contrib_BatchNormWithReLU", 3, kZero},
    {"_contrib_BatchNormWithReLU", 4, kOne},
    {"_contrib_SyncBatchNorm", 3, kZero},
    {"_contrib_SyncBatchNorm", 4, kOne},
    {"IdentityAttachKLSparseReg", 1, kZero},
};

}  // namespace

void set_first_values(const Op& op, const std::vector<NodeEntry>& inputs) {
  for (const FirstValue& value : kFirstValues) {
    if (op.name != value.op || inputs.size() <= value.input) continue;
    const NodePtr& variable = inputs[value.input].node;
    if (variable->is_variable() && !variable->constant) variable->attrs.try_emplace("__init__", value.init);
  }
}

}  // namespace hybridnet
