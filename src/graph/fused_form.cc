#include "graph/fused_form.h"

#include <algorithm>

#include "graph/fused_attention.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kConvFile = "_sg_mkldnn_conv", kDenseFile = "_sg_mkldnn_fully_connected";
constexpr const char *kConv = "_quantized_layer_conv", *kConvAdd = "_quantized_layer_conv_add",
                     *kDense = "_quantized_layer_dense";

std::map<std::string, std::string> attributes_of(const Node& node) {
  std::map<std::string, std::string> result;
  for (auto& [key, value] : node.op->schema->print(node.params->data())) result[key] = value;
  return result;
}

std::string text_or(const std::map<std::string, std::string>& attributes, const std::string& key,
                    const std::string& otherwise) {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second;
}

bool is_true(const std::map<std::string, std::string>& attributes, const std::string& key) {
  bool value = false;
  return parse_bool(text_or(attributes, key, "False"), &value) && value;
}

// The parts of a body: product, batch norm, activation, sum, activation.
struct Parts {
  Node *product = nullptr, *norm = nullptr, *activation = nullptr, *sum = nullptr, *last_activation = nullptr;
  int addend = 0;  // index of the operand of the sum
};

class Reader {
 public:
  Reader(FusedLayer layer, const std::string& name) : layer_(std::move(layer)), name_(name) {}

  NodePtr read() {
    find_parts();
    collect_roles();
    return is_true(layer_.attributes, "quantized") ? layer_of_bytes() : layer_of_floats();
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    throw FormatError({.op = layer_.op,
                       .node = name_,
                       .message = "its attributes do not fit its inputs and its subgraph",
                       .because = "the rule is: " + rule,
                       .fix = "save the model again"});
  }
  void require(bool holds, const std::string& rule) const {
    if (!holds) fail(rule);
  }

  static bool is_activation(const Node& node) {
    return node.op->name == "Activation" || node.op->name == "LeakyReLU" || node.op->name == "clip";
  }

  // Follows the chain from the output to the product.
  void find_parts() {
    const bool dense = layer_.op == kDenseFile;
    require(layer_.body->outputs.size() == 1 && layer_.body->outputs[0].index == 0, "the subgraph has one output");
    NodeEntry at = layer_.body->outputs[0];
    for (int steps = 0; !parts_.product; ++steps) {
      require(!at.node->is_variable() && at.index == 0 && steps < 8, "the subgraph ends a product of the data");
      Node& node = *at.node;
      const std::string& op = node.op->name;
      const bool before_norm = !parts_.norm;
      if (op == (dense ? "FullyConnected" : "Convolution")) {
        parts_.product = &node;
      } else if (op == "BatchNorm" && !dense && before_norm) {
        parts_.norm = &node;
        at = node.inputs[0];
      } else if (is_activation(node) && before_norm && !parts_.activation) {
        (parts_.last_activation || parts_.sum ? parts_.activation : parts_.last_activation) = &node;
        at = node.inputs[0];
      } else if (op == "elemwise_add" && !dense && before_norm && !parts_.sum) {
        parts_.sum = &node;
        parts_.addend = node.inputs[0].node->is_variable() ? 0 : 1;
        at = node.inputs[static_cast<size_t>(1 - parts_.addend)];
      } else if (dense && before_norm && node.inputs.size() == 1 && !is_true(layer_.attributes, "quantized")) {
        at = node.inputs[0];  // square, exp and the like: any function of one element
      } else {
        fail("operator '" + op + "' is no part of such a layer");
      }
    }
    if (!parts_.sum && parts_.last_activation) std::swap(parts_.activation, parts_.last_activation);
  }

  // Collects the variables of the body in the order of the node's inputs.
  void collect_roles() {
    const auto add = [&](const NodeEntry& entry) {
      require(entry.node->is_variable(), "operands of the product, of the norm and of the sum are inputs");
      roles_.push_back(entry.node);
    };
    for (const NodeEntry& entry : parts_.product->inputs) add(entry);
    for (size_t i = 1; parts_.norm && i < parts_.norm->inputs.size(); ++i) add(parts_.norm->inputs[i]);
    if (parts_.sum) add(parts_.sum->inputs[static_cast<size_t>(parts_.addend)]);
    require(layer_.inputs.size() >= roles_.size(), "there is one input of the node for each of the subgraph");
  }

  // Connects the operators of the body to the node's inputs. The last operator gets the node's name, because programs
  // look up its output by that name. The addend becomes the second operand of the sum, so that arguments are listed in
  // the file's order.
  NodePtr layer_of_floats() {
    require(layer_.inputs.size() == roles_.size(), "there is one input of the node for each of the subgraph");
    for (Node* node : topological_order(layer_.body->outputs)) {
      for (NodeEntry& input : node->inputs) {
        const auto found = std::find(roles_.begin(), roles_.end(), input.node);
        if (found != roles_.end()) input = layer_.inputs[static_cast<size_t>(found - roles_.begin())];
      }
    }
    if (parts_.sum && parts_.addend == 0) std::swap(parts_.sum->inputs[0], parts_.sum->inputs[1]);
    const NodePtr& last = layer_.body->outputs[0].node;
    last->name = name_;
    return last;
  }

  static void append_activation(const Node& node, Texts& texts) {
    const auto attributes = attributes_of(node);
    if (node.op->name == "clip") {
      texts.insert(texts.end(), {{"act_type", "clip"},
                                 {"act_alpha", text_or(attributes, "a_min", "0")},
                                 {"act_beta", text_or(attributes, "a_max", "0")}});
      return;
    }
    const bool leaky = node.op->name == "LeakyReLU";
    texts.emplace_back("act_type", text_or(attributes, "act_type", leaky ? "leaky" : ""));
    if (leaky) texts.emplace_back("act_alpha", text_or(attributes, "slope", "0.25"));
  }

  NodePtr layer_of_bytes() {
    const bool dense = layer_.op == kDenseFile;
    Texts texts = parts_.product->op->schema->print(parts_.product->params->data());
    if (parts_.norm) {
      const auto norm = attributes_of(*parts_.norm);
      texts.insert(texts.end(), {{"with_bn", "True"},
                                 {"eps", text_or(norm, "eps", "0.001")},
                                 {"fix_gamma", text_or(norm, "fix_gamma", "True")}});
    }
    if (parts_.activation) append_activation(*parts_.activation, texts);
    if (parts_.sum) texts.emplace_back("with_sum", "True");
    if (parts_.last_activation) {
      require(text_or(attributes_of(*parts_.last_activation), "act_type", "") == "relu",
              "only relu follows a sum of bytes");
      texts.emplace_back("relu_of_sum", "True");
    }
    for (const char* end : {"min_calib_range", "max_calib_range"}) {
      const std::string text = text_or(layer_.attributes, end, "None");
      if (!is_none_text(text)) texts.emplace_back(end, text);
    }
    const bool byte_weights = dense && !is_true(layer_.attributes, "channel_wise_quantize");
    if (dense) {
      texts.emplace_back("byte_weights", byte_weights ? "True" : "False");
      if (is_true(layer_.attributes, "enable_float_output")) texts.emplace_back("float_output", "True");
    }
    const Op& op = op_registry().at(dense ? kDense : parts_.sum ? kConvAdd : kConv);
    return make_node(op, name_, op.schema->parse(texts, op.name, true), inputs_of_bytes(byte_weights));
  }

  // Returns data, weight, range of data, addend with its range, then the other inputs.
  std::vector<NodeEntry> inputs_of_bytes(bool byte_weights) const {
    const size_t base = roles_.size(), weights = parts_.product->inputs.size() - 1;
    const size_t ranges = 2 + (parts_.sum ? 2 : 0) + (byte_weights ? 2 * weights : 0);
    require(layer_.inputs.size() == base + ranges,
            std::to_string(base) + " inputs of the subgraph and " + std::to_string(ranges) + " ends of ranges");
    const auto& in = layer_.inputs;
    std::vector<NodeEntry> inputs{in[0], in[1], in[base], in[base + 1]};
    if (parts_.sum) inputs.insert(inputs.end(), {in[base - 1], in[base + 2], in[base + 3]});
    const auto first = in.begin() + 2, last = in.begin() + static_cast<std::ptrdiff_t>(base - (parts_.sum ? 1 : 0));
    inputs.insert(inputs.end(), first, last);
    if (byte_weights) inputs.insert(inputs.end(), in.begin() + static_cast<std::ptrdiff_t>(base + 2), in.end());
    return inputs;
  }

  FusedLayer layer_;
  const std::string& name_;
  Parts parts_;
  std::vector<NodePtr> roles_;
};

// ---- writing

// The order of a quantized layer's inputs in files, the inverse of Reader::inputs_of_bytes: data, weight, the other
// inputs of the product and the norm, the addend, the ranges of data and addend, the last `ranges` inputs unchanged.
std::vector<size_t> places_in_file(size_t count, bool sum, size_t ranges) {
  std::vector<size_t> places{0, 1};
  for (size_t i = sum ? 7 : 4; i < count - ranges; ++i) places.push_back(i);
  if (sum) places.push_back(4);
  places.insert(places.end(), {2, 3});
  if (sum) places.insert(places.end(), {5, 6});
  for (size_t i = count - ranges; i < count; ++i) places.push_back(i);
  return places;
}

class Writer {
 public:
  explicit Writer(const Node& node)
      : node_(node), texts_(attributes_of(node)), dense_(node.op->name == kDense), sum_(is_true(texts_, "with_sum")) {}

  FusedLayer write() {
    layer_.op = std::string(dense_ ? kDenseFile : kConvFile);
    layer_.body = make_ref<Subgraph>();
    layer_.attributes["quantized"] = "true";
    bool bytes = dense_ && !texts_.count("byte_weights");
    if (dense_ && !bytes) layer_.attributes["channel_wise_quantize"] = "True";
    if (is_true(texts_, "float_output")) layer_.attributes["enable_float_output"] = "True";
    for (const char* end : {"min_calib_range", "max_calib_range"})
      if (texts_.count(end)) layer_.attributes[end] = texts_.at(end);
    layer_.body->outputs = {body()};
    order_inputs(bytes);
    return std::move(layer_);
  }

 private:
  NodeEntry add(const char* op, const char* suffix, const Texts& texts, std::vector<NodeEntry> inputs) {
    const Op& found = op_registry().at(op);
    return {make_node(found, node_.name + suffix, found.schema->parse(texts, op, true), std::move(inputs)), 0};
  }
  NodeEntry input(const char* name) {
    layer_.body->inputs.push_back(make_variable(node_.name + "_" + name + "0"));
    return {layer_.body->inputs.back(), 0};
  }

  NodeEntry body() {
    static const std::vector<std::string> kProduct{"kernel",    "stride",  "dilate", "pad",        "num_filter",
                                                   "num_group", "no_bias", "layout", "num_hidden", "flatten"};
    Texts product;
    for (const std::string& key : kProduct)
      if (texts_.count(key)) product.emplace_back(key, texts_.at(key));
    std::vector<NodeEntry> inputs{input("data"), input("weight")};
    if (!is_true(texts_, "no_bias")) inputs.push_back(input("bias"));
    NodeEntry at = add(dense_ ? "FullyConnected" : "Convolution", "_fwd", product, std::move(inputs));
    if (is_true(texts_, "with_bn")) {
      layer_.attributes["with_bn"] = "true";
      at = add("BatchNorm", "_norm",
               {{"eps", text_or(texts_, "eps", "0.001")}, {"fix_gamma", text_or(texts_, "fix_gamma", "True")}},
               {at, input("gamma"), input("beta"), input("mean"), input("var")});
    }
    at = activation(at);
    if (sum_) {
      layer_.attributes["with_sum"] = "true";
      at = add("elemwise_add", "_sum", {}, {at, input("sum")});
      if (is_true(texts_, "relu_of_sum")) {
        layer_.attributes["with_postsum_act"] = "true";
        at = add("Activation", "_relu", {{"act_type", "relu"}}, {at});
      }
    }
    return at;
  }

  NodeEntry activation(const NodeEntry& at) {
    const std::string type = text_or(texts_, "act_type", "none");
    if (type == "none") return at;
    layer_.attributes[dense_ ? "with_eltwise" : "with_act"] = "true";
    const std::string alpha = text_or(texts_, "act_alpha", "0.0");
    if (type == "clip")
      return add("clip", "_act", {{"a_min", alpha}, {"a_max", text_or(texts_, "act_beta", "0.0")}}, {at});
    if (type == "leaky" || type == "elu" || type == "gelu")
      return add("LeakyReLU", "_act", {{"act_type", type}, {"slope", alpha}}, {at});
    return add("Activation", "_act", {{"act_type", type}}, {at});
  }

  void order_inputs(bool bytes) {
    const size_t ranges = bytes ? 2 * (is_true(texts_, "no_bias") ? 1 : 2) : 0;
    for (const size_t i : places_in_file(node_.inputs.size(), sum_, ranges)) layer_.inputs.push_back(node_.inputs[i]);
  }

  const Node& node_;
  const std::map<std::string, std::string> texts_;
  const bool dense_, sum_;
  FusedLayer layer_;
};

}  // namespace

bool is_fused_layer(std::string_view file_op) {
  return file_op == kConvFile || file_op == kDenseFile || is_fused_attention(file_op);
}

bool is_layer_of_bytes(const Node& node) {
  if (node.is_variable()) return false;
  const std::string& op = node.op->name;
  return op == kConv || op == kConvAdd || op == kDense;
}

NodePtr node_of(FusedLayer layer, const std::string& name) {
  if (is_fused_attention(layer.op)) return attention_node_of(layer, name);
  return Reader(std::move(layer), name).read();
}

std::optional<FusedLayer> fused_layer(const Node& node) {
  if (!is_layer_of_bytes(node)) return std::nullopt;
  return Writer(node).write();
}

}  // namespace hybridnet
