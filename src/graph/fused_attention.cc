#include "graph/fused_attention.h"

#include "op/attr_text.h"

namespace hybridnet {
namespace {

constexpr std::string_view kScores = "_sg_mkldnn_selfatt_qk", kValues = "_sg_mkldnn_selfatt_valatt";

class AttentionReader {
 public:
  AttentionReader(const FusedLayer& layer, const std::string& name) : layer_(layer), name_(name) {}

  NodePtr read() const {
    const size_t operands = layer_.op == kScores ? 1 : 2;
    const bool bytes = is_true("quantized");
    const size_t wanted = operands * (bytes ? 3 : 1);
    if (layer_.inputs.size() != wanted)
      fail("there are " + std::to_string(wanted) + " inputs", std::to_string(layer_.inputs.size()));
    return bytes ? product_of_bytes(operands) : product(name_, layer_.inputs);
  }

 private:
  [[noreturn]] void fail(const std::string& rule, const std::string& given) const {
    throw FormatError({.op = layer_.op,
                       .node = name_,
                       .given = given,
                       .message = "its attributes do not fit its inputs",
                       .because = "the rule is: " + rule,
                       .fix = "save the model again"});
  }

  std::string text(const char* key) const {
    const auto found = layer_.attributes.find(key);
    return found == layer_.attributes.end() ? "None" : found->second;
  }
  bool is_true(const char* key) const {
    bool value = false;
    return parse_bool(text(key), &value) && value;
  }

  static NodePtr make(const char* op, std::string name, const std::vector<std::pair<std::string, std::string>>& texts,
                      std::vector<NodeEntry> inputs) {
    const Op& found = op_registry().at(op);
    return make_node(found, std::move(name), found.schema->parse(texts, op, true), std::move(inputs));
  }

  NodePtr product(const std::string& name, std::vector<NodeEntry> operands) const {
    const char* op =
        layer_.op == kScores ? "_contrib_interleaved_matmul_selfatt_qk" : "_contrib_interleaved_matmul_selfatt_valatt";
    return make(op, name, {{"heads", text("heads")}}, std::move(operands));
  }

  // MXNet sums the int8 products exactly and scales the sum; here the operands are dequantized first. The inputs are
  // the operands, then their ranges.
  NodePtr product_of_bytes(size_t operands) const {
    std::vector<NodeEntry> floats;
    for (size_t i = 0; i < operands; ++i) {
      const size_t range = operands + 2 * i;
      floats.push_back({make("_contrib_dequantize", name_ + (i == 0 ? "_qkv" : "_attention"), {},
                             {layer_.inputs[i], layer_.inputs[range], layer_.inputs[range + 1]}),
                        0});
    }
    if (is_true("enable_float_output")) return product(name_, std::move(floats));
    const std::string least = text("min_calib_range"), most = text("max_calib_range");
    if (is_none_text(least) || is_none_text(most))
      fail("a product of bytes has a calibrated range or enable_float_output", "neither");
    return make("_contrib_quantize_v2", name_,
                {{"out_type", "int8"}, {"min_calib_range", least}, {"max_calib_range", most}},
                {{product(name_ + "_product", std::move(floats)), 0}});
  }

  const FusedLayer& layer_;
  const std::string& name_;
};

}  // namespace

bool is_fused_attention(std::string_view file_op) { return file_op == kScores || file_op == kValues; }

NodePtr attention_node_of(const FusedLayer& layer, const std::string& name) {
  return AttentionReader(layer, name).read();
}

}  // namespace hybridnet
