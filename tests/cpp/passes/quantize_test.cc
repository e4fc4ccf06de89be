// Networks of floats as networks of bytes.
#include "passes/quantize/quantize.h"

#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

using passes::QuantizeMode;
using passes::QuantizeOptions;

NodeEntry named(NodeEntry entry, const std::string& name) {
  entry.node->name = name;
  return entry;
}

NodeEntry convolution(const NodeEntry& x, const std::string& name) {
  return named(use("Convolution", {x, var(name + "_weight")},
                   {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"pad", "(1, 1)"}, {"no_bias", "True"}}),
               name);
}

NodeEntry relu(const NodeEntry& x, const std::string& name) {
  return named(use("Activation", {x}, {{"act_type", "relu"}}), name);
}

NodeEntry norm(const NodeEntry& x, const std::string& name) {
  return named(
      use("BatchNorm", {x, var(name + "_gamma"), var(name + "_beta"), var(name + "_mean"), var(name + "_var")}), name);
}

std::vector<std::string> names(const Symbol& symbol) {
  std::vector<std::string> result;
  for (const Node* node : topological_order(symbol.outputs))
    if (!node->is_variable()) result.push_back(node->name);
  return result;
}

using Names = std::vector<std::string>;

QuantizeOptions options(std::set<std::string> parameters) {
  Runtime::get();
  return {.parameters = std::move(parameters), .ranges_follow = true};
}

TEST(Quantize, ChainsStayInBytes) {
  const Symbol net{{convolution(relu(convolution(var("x"), "a"), "r"), "b")}};
  const auto [quantized, entries] = passes::quantize(net, options({"a_weight", "b_weight"}));
  EXPECT_EQ(names(quantized), (Names{"x_quantize", "quantized_a", "requantize_a", "quantized_r", "quantized_b",
                                     "requantize_b", "b_dequantize"}));
  EXPECT_EQ(entries, (Names{"x", "a_output", "r_output", "b_output"}));
  EXPECT_EQ(quantized.list_arguments(),
            (Names{"x", "a_weight_quantize", "a_weight_quantize_min", "a_weight_quantize_max", "b_weight_quantize",
                   "b_weight_quantize_min", "b_weight_quantize_max"}));
}

TEST(Quantize, FloatsAreMadeOnceForAllThatReadThem) {
  const NodeEntry layer = convolution(var("x"), "a");
  const Symbol net{{named(use("sin", {layer}), "s"), named(use("cos", {layer}), "c")}};
  EXPECT_EQ(names(passes::quantize(net, options({"a_weight"})).symbol),
            (Names{"x_quantize", "quantized_a", "requantize_a", "a_dequantize", "s", "c"}));
}

TEST(Quantize, WhatIsExcludedStays) {
  const Symbol net{{relu(convolution(var("x"), "a"), "r")}};
  QuantizeOptions by_name = options({"a_weight"}), by_op = by_name;
  by_name.excluded_nodes = {"a", "r"};
  by_op.excluded_ops = {"Convolution", "Activation"};
  for (const QuantizeOptions& chosen : {by_name, by_op})
    EXPECT_EQ(names(passes::quantize(net, chosen).symbol), (Names{"a", "r"}));
}

TEST(Quantize, SmartTakesWhatStandsBetweenLayersOnly) {
  const Symbol net{{relu(convolution(relu(convolution(var("x"), "a"), "r"), "b"), "last")}};
  QuantizeOptions smart = options({"a_weight", "b_weight"});
  smart.mode = QuantizeMode::kSmart;
  const Names found = names(passes::quantize(net, smart).symbol);
  EXPECT_EQ(found.back(), "last");
  EXPECT_EQ(std::count(found.begin(), found.end(), "quantized_r"), 1);
}

TEST(Quantize, ValuesThatAProductReadsHaveASign) {
  const NodeEntry x = convolution(var("x"), "a"), y = convolution(var("x"), "b");
  QuantizeOptions unsigned_too = options({"a_weight", "b_weight"});
  unsigned_too.always_signed = false;
  const Symbol product{{use("elemwise_mul", {relu(x, "r"), y})}}, sum{{use("elemwise_add", {relu(x, "r"), y})}};
  const auto types = [&](const Symbol& net) {
    std::vector<std::string> found;
    const Symbol quantized = passes::quantize(net, unsigned_too).symbol;
    for (const Node* node : topological_order(quantized.outputs))
      if (!node->is_variable() && node->name == "requantize_a")
        for (const auto& [key, value] : node->op->schema->print(node->params->data()))
          if (key == "out_type") found.push_back(value);
    return found;
  };
  EXPECT_EQ(types(product), Names{});  // int8 is the default
  EXPECT_EQ(types(sum), Names{"auto"});
}

TEST(SetRanges, BytesWithoutASignDoWhatReluDoes) {
  const Symbol net{{convolution(relu(convolution(var("x"), "a"), "r"), "b")}};
  const passes::Ranges ranges{{"x", {-1, 1}}, {"a_output", {-3, 2}}, {"r_output", {0, 2}}, {"b_output", {-1, 1}}};
  for (const bool always_signed : {true, false}) {
    QuantizeOptions chosen = options({"a_weight", "b_weight"});
    chosen.always_signed = always_signed;
    const Symbol calibrated = passes::set_ranges(passes::quantize(net, chosen).symbol, ranges);
    const Names found = names(calibrated);
    EXPECT_EQ(std::count(found.begin(), found.end(), "quantized_r"), always_signed ? 1 : 0);
    EXPECT_EQ(passes::weights_beside_unsigned_data(calibrated),
              always_signed ? std::set<std::string>{} : std::set<std::string>{"b_weight_quantize"});
  }
}

TEST(SetRanges, ANormWithoutARangeIsNamed) {
  const Symbol net{{norm(use("sin", {var("x")}), "n")}};
  const Symbol quantized = passes::quantize(net, options({})).symbol;
  try {
    passes::set_ranges(quantized, {});
    ADD_FAILURE() << "no error";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("n_output"), std::string::npos) << error.what();
  }
}

TEST(FoldBatchNorms, ANormBehindALayerBecomesItsWeights) {
  const Symbol net{{norm(convolution(var("x"), "a"), "n")}};
  const auto [folded, values] = passes::fold_batch_norms(net, {});
  EXPECT_EQ(names(folded), Names{"a"});
  EXPECT_EQ(folded.list_arguments(), (Names{"x", "a_weight", "a_bias"}));
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].first, "a_weight");
  EXPECT_EQ(values[1].first, "a_bias");
  const auto [quantized, entries] = passes::quantize(folded, options({"a_weight", "a_bias"}));
  EXPECT_EQ(entries, (Names{"x", "n_output"}));  // names in the user's graph
}

TEST(FoldBatchNorms, NormsStayWhereOthersReadTheLayerOrItsWeights) {
  const NodeEntry layer = convolution(var("x"), "a");
  const auto stays = [](const std::vector<NodeEntry>& outputs, const std::set<std::string>& except = {}) {
    return passes::fold_batch_norms(Symbol{outputs}, except).values.empty();
  };
  EXPECT_TRUE(stays({norm(layer, "n"), use("sin", {layer})}));
  EXPECT_TRUE(stays({norm(layer, "n"), use("sin", {layer.node->inputs[1]})}));
  EXPECT_TRUE(stays({norm(use("sin", {layer}), "n")}));
  EXPECT_TRUE(stays({norm(layer, "n")}, {"n"}));
  EXPECT_FALSE(stays({norm(layer, "n")}));
}

}  // namespace
}  // namespace hybridnet::graph_testing
