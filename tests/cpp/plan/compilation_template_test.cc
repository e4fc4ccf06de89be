// Plans for new sizes: laid out from graphs that were rewritten and linked for other sizes, with the same results as a
// new compilation.
#include <functional>

#include "graph/build_graph.h"
#include "hybridnet/plan.h"
#include "plan/graph_callable.h"

namespace hybridnet::graph_testing {
namespace {

// A graph of `data` and parameters, which is called with many shapes of data.
struct Network {
  NodeEntry data = var("data");
  std::vector<NodeEntry> parameters;
  std::vector<NDArray> values;
  std::vector<NodeEntry> outputs;

  NodeEntry parameter(const Shape& shape) {
    parameters.push_back(var("p" + std::to_string(parameters.size())));
    values.push_back(random_array(shape, 50 + static_cast<uint32_t>(parameters.size())));
    return parameters.back();
  }
  Ref<GraphCallable> compiled() const { return make_ref<GraphCallable>(Symbol{outputs}, CallOptions{}); }
  std::vector<NDArray> arguments(const Symbol& symbol, const NDArray& x) const {
    std::vector<NDArray> result;
    for (const NodePtr& node : symbol.list_inputs()) {
      if (node == data.node) result.push_back(x);
      for (size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].node == node) result.push_back(values[i]);
    }
    return result;
  }
};

// Returns the outputs, then the gradients of data and parameters if `gradients` is set.
std::vector<NDArray> run(const Network& net, GraphCallable& op, const Shape& shape, bool gradients) {
  const NDArray x = random_array(shape, 7);
  if (!gradients) return op.call(net.arguments(op.symbol(), x));
  std::vector<NDArray> variables{x}, buffers, outputs, heads;
  variables.insert(variables.end(), net.values.begin(), net.values.end());
  for (const NDArray& array : variables) {
    buffers.push_back(NDArray::empty(array.spec()));
    mark_variable(array, buffers.back(), GradReq::kWrite);
  }
  {
    const Record record;
    outputs = op.call(net.arguments(op.symbol(), x));
  }
  for (const NDArray& output : outputs) heads.push_back(random_array(output.shape(), 3));
  backward(outputs, heads, false, true);
  for (const NDArray& array : variables) drop_grad(array);
  outputs.insert(outputs.end(), buffers.begin(), buffers.end());
  return outputs;
}

// Calls one function with all shapes, and a new function with each: expects the same results to the bit.
Ref<GraphCallable> expect_as_compiled_anew(const Network& net, const std::vector<Shape>& shapes, bool gradients) {
  Ref<GraphCallable> op = net.compiled();
  for (const Shape& shape : shapes) {
    const std::vector<NDArray> found = run(net, *op, shape, gradients);
    const std::vector<NDArray> expected = run(net, *net.compiled(), shape, gradients);
    EXPECT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].spec().str(), expected[i].spec().str()) << shape.str();
      EXPECT_EQ(values_of(found[i]), values_of(expected[i])) << "result " << i << " for " << shape.str();
    }
  }
  return op;
}

Network perceptron() {
  Network net;
  NodeEntry e = net.data;
  for (int i = 0; i < 3; ++i) {
    e = use("FullyConnected", {e, net.parameter({9, 9}), net.parameter({9})}, {{"num_hidden", "9"}});
    e = use("relu", {use("_mul_scalar", {e}, {{"scalar", "1.5"}})});
  }
  net.outputs = {use("softmax", {e})};
  return net;
}

// Attention over rows of a sequence: reshapes, transposes, products, a mean; gradients whose parameters contain sizes.
Network attention() {
  Network net;
  const auto dense = [&](const NodeEntry& x) {
    return use("FullyConnected", {x, net.parameter({12, 12})},
               {{"num_hidden", "12"}, {"flatten", "0"}, {"no_bias", "1"}});
  };
  const auto heads = [&](const NodeEntry& x) {
    const NodeEntry split = use("Reshape", {x}, {{"shape", "(0, 0, 3, -1)"}});
    return use("Reshape", {use("transpose", {split}, {{"axes", "(0, 2, 1, 3)"}})}, {{"shape", "(-3, 0, 0)"}});
  };
  const NodeEntry q = heads(dense(net.data)), k = heads(dense(net.data)), v = heads(dense(net.data));
  const NodeEntry weights = use("softmax", {use("batch_dot", {q, k}, {{"transpose_b", "1"}})});
  const NodeEntry mixed = use("batch_dot", {weights, v});
  const NodeEntry centered = use("broadcast_sub", {mixed, use("mean", {mixed}, {{"axis", "1"}, {"keepdims", "1"}})});
  net.outputs = {use("tanh", {centered}), use("sum", {use("square", {mixed})}, {{"axis", "(1, 2)"}})};
  return net;
}

class Gradients : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(CompilationTemplate, Gradients, ::testing::Bool());

TEST_P(Gradients, NewSizesAreLayoutsOfOnePlan) {
  std::vector<Shape> shapes;
  for (int64_t n = 2; n < 20; ++n)
    if (n != 9) shapes.push_back({n, 9});
  const Ref<GraphCallable> op = expect_as_compiled_anew(perceptron(), shapes, GetParam());
  EXPECT_EQ(op->counts().layouts, shapes.size());
  EXPECT_EQ(op->counts().plans, 1u);
  EXPECT_EQ(op->counts().linked, 1u);
  EXPECT_EQ(op->counts().rewritten, 2u);  // the first, and one that proves it
}

TEST_P(Gradients, SizesInParametersOfGradientsFollow) {
  const std::vector<Shape> shapes{{2, 5, 12}, {3, 7, 12}, {5, 6, 12}, {2, 9, 12}, {7, 5, 12}, {4, 22, 12}};
  const Ref<GraphCallable> op = expect_as_compiled_anew(attention(), shapes, GetParam());
  EXPECT_LE(op->counts().rewritten, 4u);  // two graphs, because attention of few queries is fused, and a proof of each
}

TEST_P(Gradients, AnAxisThatNeverChangedIsProvedWhenItDoes) {
  const std::vector<Shape> shapes{{2, 5, 12}, {3, 5, 12}, {4, 5, 12}, {4, 7, 12}, {5, 8, 12}, {6, 9, 12}};
  const Ref<GraphCallable> op = expect_as_compiled_anew(attention(), shapes, GetParam());
  EXPECT_GE(op->counts().rewritten, 3u);
  EXPECT_LT(op->counts().rewritten, shapes.size());
}

TEST_P(Gradients, AReshapeThatChangesNothingForOneSizeOnlyIsNotDropped) {
  Network net;
  net.outputs = {use("tanh", {use("Reshape", {net.data}, {{"shape", "(6, -1)"}})})};
  expect_as_compiled_anew(net, {{6, 4}, {12, 3}, {18, 5}, {24, 7}, {6, 8}, {30, 9}}, GetParam());
}

TEST_P(Gradients, EqualSizesByChanceDoNotHoldForOthers) {
  Network net;
  const NodeEntry w = net.parameter({9, 9});
  // For 9 rows these are sums of equal shapes; for others the scalar is broadcast.
  net.outputs = {use("broadcast_add", {use("dot", {net.data, w}), use("mean", {w}, {{"axis", "0"}})}),
                 use("dot", {net.data, use("elemwise_add", {w, w})})};
  expect_as_compiled_anew(net, {{9, 9}, {4, 9}, {5, 9}, {9, 9}, {6, 9}, {7, 9}}, GetParam());
}

TEST_P(Gradients, SizesZeroAndOneAreCompiledAnew) {
  const Network net = perceptron();
  const Ref<GraphCallable> op = expect_as_compiled_anew(net, {{2, 9}, {3, 9}, {1, 9}, {0, 9}, {4, 9}}, GetParam());
  EXPECT_EQ(op->counts().rewritten, 4u);
}

// Operators on images whose layout, algorithm or axes rewrites choose: convolutions, normalization, a residual, and
// axes of channels and of space.
Network images() {
  Network net;
  const auto convolution = [&](const NodeEntry& x, int64_t channels, int64_t filters, const char* kernel,
                               const char* pad, const char* stride = "(1, 1)") {
    return use("Convolution", {x, net.parameter({filters, channels, kernel[1] - '0', kernel[1] - '0'})},
               {{"kernel", kernel},
                {"pad", pad},
                {"stride", stride},
                {"num_filter", std::to_string(filters)},
                {"no_bias", "True"}});
  };
  const auto half = [](const NodeEntry& x, const char* begin, const char* end) {
    return use("slice_axis", {x}, {{"axis", "1"}, {"begin", begin}, {"end", end}});
  };
  const NodeEntry stem = use("relu", {convolution(net.data, 3, 32, "(3, 3)", "(1, 1)", "(2, 2)")});
  const NodeEntry wide = use("relu", {convolution(stem, 32, 32, "(3, 3)", "(1, 1)")});
  const NodeEntry sum = use("relu", {use("elemwise_add", {convolution(wide, 32, 32, "(3, 3)", "(1, 1)"), stem})});
  const NodeEntry swapped = use("Concat", {half(sum, "16", "32"), half(sum, "0", "16")}, {{"dim", "1"}});
  const NodeEntry small = use("Pooling", {convolution(swapped, 32, 8, "(1, 1)", "(0, 0)")},
                              {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "max"}});
  net.outputs = {use("mean", {small}, {{"axis", "(2, 3)"}}), use("Flatten", {half(small, "0", "2")})};
  return net;
}

TEST_P(Gradients, ImagesOfNewSizesAreLaidOutWithoutRewriting) {
  const std::vector<Shape> shapes{{4, 3, 24, 24}, {5, 3, 24, 24}, {6, 3, 24, 24}, {4, 3, 28, 28}, {7, 3, 28, 32},
                                  {8, 3, 32, 24}, {9, 3, 40, 36}, {4, 3, 24, 24}, {6, 3, 48, 28}, {5, 3, 30, 46}};
  const Ref<GraphCallable> op = expect_as_compiled_anew(images(), shapes, GetParam());
  EXPECT_LE(op->counts().rewritten, 4u);
}

TEST_P(Gradients, OneGraphServesSizesThatDifferInTheAlgorithmOfConvolutions) {
  const Network net = images();
  const Ref<GraphCallable> op = net.compiled();
  const auto uses_winograd = [&](GraphCallable& called, const Shape& shape) {
    run(net, called, shape, GetParam());
    return called.plan_text().find("winograd:4x4") != std::string::npos;
  };
  int with = 0, without = 0;
  for (const int64_t n : {2, 3, 4, 8, 2, 9, 3, 10, 2, 11})
    for (const int64_t size : {12, 16, 24}) {
      const Shape shape{n, 3, size, size};
      const bool expected = uses_winograd(*net.compiled(), shape);
      EXPECT_EQ(uses_winograd(*op, shape), expected) << shape.str();
      ++(expected ? with : without);
    }
  EXPECT_GT(with, 5);
  EXPECT_GT(without, 5);
  EXPECT_LT(op->counts().rewritten, op->counts().layouts);
  EXPECT_EQ(op->counts().plans, 1u);
  expect_as_compiled_anew(net, {{2, 3, 12, 12}, {8, 3, 24, 24}, {3, 3, 12, 12}, {9, 3, 24, 24}, {4, 3, 14, 12}},
                          GetParam());
}

// Takes sixteen rows of a convolution's image: if the image has more, a channels-last convolution with slices copied
// back copies less than a plain convolution does internally.
TEST(CompilationTemplate, SizesForWhichRewritesDecideOtherwiseAreCompiledAnew) {
  Network net;
  const NodeEntry image = use("Convolution", {net.data, net.parameter({16, 3, 3, 3})},
                              {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "16"}, {"no_bias", "True"}});
  const NodeEntry first = use("slice_axis", {image}, {{"axis", "2"}, {"begin", "0"}, {"end", "8"}});
  const NodeEntry last = use("slice_axis", {image}, {{"axis", "2"}, {"begin", "-8"}, {"end", "None"}});
  net.outputs = {use("Concat", {first, last}, {{"dim", "2"}})};
  const std::vector<Shape> shapes{{2, 3, 10, 12}, {2, 3, 24, 14}, {3, 3, 11, 15}, {2, 3, 30, 18},
                                  {4, 3, 13, 20}, {5, 3, 27, 21}, {3, 3, 14, 22}, {4, 3, 40, 11}};
  const Ref<GraphCallable> op = expect_as_compiled_anew(net, shapes, false);
  EXPECT_EQ(op->counts().plans, 2u);
  EXPECT_LT(op->counts().rewritten, shapes.size());
}

TEST(CompilationTemplate, AForgottenLayoutIsMadeAgain) {
  const Network net = perceptron();
  const Ref<GraphCallable> op = net.compiled();
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 10; n < 60; ++n) run(net, *op, {n, 9}, false);
  EXPECT_EQ(op->counts().layouts, 100u);
  EXPECT_EQ(op->counts().linked, 1u);
  EXPECT_EQ(op->counts().rewritten, 2u);
}

TEST(CompilationTemplate, AWrongSizeIsTheErrorOfTheUsersGraph) {
  const Network net = perceptron();
  const Ref<GraphCallable> op = net.compiled();
  for (const int64_t n : {2, 3, 4}) run(net, *op, {n, 9}, false);
  EXPECT_THROW(run(net, *op, {5, 8}, false), ShapeError);
  run(net, *op, {6, 9}, false);
  EXPECT_EQ(op->counts().rewritten, 2u);
}

}  // namespace
}  // namespace hybridnet::graph_testing
