#include "passes/attributes.h"

namespace hybridnet::passes {

AttrValue attribute(const Node& node, std::string_view name) {
  const int field = node.op->schema->find(name);
  return field < 0 ? AttrValue() : node.op->schema->get(node.params->data(), field);
}

double number_attribute(const Node& node, std::string_view name, double otherwise) {
  const AttrValue found = attribute(node, name);
  if (const auto* number = std::get_if<double>(&found.value)) return *number;
  if (const auto* whole = std::get_if<int64_t>(&found.value)) return static_cast<double>(*whole);
  return otherwise;
}

int64_t integer_attribute(const Node& node, std::string_view name, int64_t otherwise) {
  const AttrValue found = attribute(node, name);
  const auto* whole = std::get_if<int64_t>(&found.value);
  return whole ? *whole : otherwise;
}

bool bool_attribute(const Node& node, std::string_view name, bool otherwise) {
  const AttrValue found = attribute(node, name);
  const auto* flag = std::get_if<bool>(&found.value);
  return flag ? *flag : otherwise;
}

std::string text_attribute(const Node& node, std::string_view name) {
  const AttrValue found = attribute(node, name);
  return found.is_none() ? std::string() : found.str();
}

ParamsPtr make_params(const Op& op, const Node* from, const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  const Ref<Params> params = op.schema->create();
  uint64_t given = 0;
  auto set = [&](int field, const AttrValue& value) {
    op.schema->set(params->data(), field, value, op.name);
    given |= uint64_t{1} << field;
  };
  const std::vector<FieldInfo>& fields = op.schema->fields();
  for (int i = 0; from && i < static_cast<int>(fields.size()); ++i) {
    if (const int same = from->op->schema->find(fields[static_cast<size_t>(i)].name); same >= 0) {
      set(i, from->op->schema->get(from->params->data(), same));
    }
  }
  for (const auto& [name, value] : attrs) {
    const int field = op.schema->find(name);
    if (field < 0) {
      throw Error(ErrorKind::kError, {.op = op.name, .input = name, .message = "a rewrite uses an unknown parameter"});
    }
    set(field, value);
  }
  op.schema->finish(params->data(), given, op.name);
  return ParamsPtr(params.get());
}

}  // namespace hybridnet::passes
