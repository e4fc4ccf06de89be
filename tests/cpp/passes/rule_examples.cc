#include "passes/rule_examples.h"

#include "passes/gradient/gradient.h"
#include "passes/rule_graphs.h"

namespace hybridnet::graph_testing {
namespace {

const TextAttrs kFour{{"num_hidden", "4"}, {"no_bias", "True"}};

const TensorSpec kVectors{Shape{3, 4}, DType::kFloat32}, kVectors64{Shape{3, 4}, DType::kFloat64};

// relu(x w^T) + x; in_half: after the rule bfloat16.
Graph dense_layer(const TensorSpec& spec, bool in_half, bool train = false) {
  const NodeEntry x = var("x"), w = var("w");
  const NodeEntry layer = use("relu", {use("FullyConnected", {x, w}, kFour)});
  Graph graph = make_graph({x, w}, {spec, {Shape{4, 4}, spec.dtype}}, {use("elemwise_add", {layer, x})}, train);
  if (in_half) run_rewrite(graph, RewriteDatabase::current()->at("bfloat16"));
  return graph;
}

// exp(x); with is_read, a gradient reads it.
Graph value_for_gradient(bool is_read) {
  const NodeEntry x = var("x"), head = var("head"), y = use("exp", {x});
  Graph graph =
      make_graph({x, head}, {kVector, kVector}, {use("sum", {y}), use("elemwise_mul", {head, is_read ? y : x})});
  graph.inputs()[1]->attrs[kHeadAttribute] = "1";
  return graph;
}

// Splits a join into two halves. The joined arrays are (2, 4) and (2, 4), or (2, 3) and (2, 5).
Graph split_of_two(const char* join, bool halves) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry parts = use("SliceChannel", {use(join, {x, y}, {{"num_args", "2"}})}, {{"num_outputs", "2"}});
  return make_graph({x, y}, {float32({2, halves ? 4 : 3}), float32({2, halves ? 4 : 5})},
                    {use("elemwise_sub", {output(parts, 1), parts})});
}

Graph first_part_of_two(const char* join) {
  const NodeEntry x = var("x"), y = var("y");
  const TextAttrs attrs = std::string(join) == "Concat" ? TextAttrs{{"num_args", "2"}} : TextAttrs();
  const NodeEntry parts = use("SliceChannel", {use(join, {x, y}, attrs)}, {{"num_outputs", "2"}});
  return make_graph({x, y}, {float32({2, 4}), float32({2, 4})}, {use("tanh", {parts})});
}

// (2, 1) repeated to (2, 4), plus an operand that has the other size itself, or does not.
Graph repeated_plus(std::initializer_list<int64_t> other) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry sum = use("broadcast_add", {use("broadcast_to", {x}, {{"shape", "(2, 4)"}}), y});
  return make_graph({x, y}, {float32({2, 1}), {Shape(other), DType::kFloat32}}, {sum});
}

Graph shape_of_vector() {
  return of_x([](auto& x) { return use("shape_array", {x}); });
}

// A vector repeated once for each of its elements.
Graph repeated_by_sizes() {
  return of_x([](auto& x) { return use("_with_sizes", {x}, {{"op", "tile"}, {"attrs", "reps=({#0.0},1)"}}); });
}

// (1, 1, 4) repeated to (2, 3, 4) in two steps, the first of them to the shape of another array.
Graph repeated_like(const char* axes_of_second) {
  const NodeEntry x = var("x"), y = var("y"), z = var("z");
  const NodeEntry once = use("broadcast_like", {x, y});
  const TextAttrs attrs{{"lhs_axes", axes_of_second}, {"rhs_axes", axes_of_second}};
  return make_graph({x, y, z}, {float32({1, 1, 4}), float32({1, 3, 4}), float32({2, 3, 4})},
                    {use("broadcast_like", {once, z}, attrs)});
}

NodeEntry summed(const NodeEntry& x, const char* axis) {
  return use("sum", {x}, {{"axis", axis}, {"keepdims", "True"}});
}

Graph quotient_of_exponentials(const char* axis) {
  return of_x(
      [axis](auto& x) {
        const NodeEntry e = use("exp", {x});
        return use("broadcast_div", {e, summed(e, axis)});
      },
      kRows);
}

// Layer norm in single steps; eps inside or outside the root.
Graph norm_by_hand(const char* axis, bool eps_inside) {
  return of_x(
      [=](auto& x) {
        const TextAttrs rows_of{{"axis", axis}, {"keepdims", "True"}};
        const NodeEntry centered = use("broadcast_sub", {x, use("mean", {x}, rows_of)});
        const NodeEntry variance = use("mean", {use("square", {centered})}, rows_of);
        return use("broadcast_div", {centered, eps_inside ? use("sqrt", {plus(variance, "1e-5")})
                                                          : plus(use("sqrt", {variance}), "1e-5")});
      },
      kRows);
}

// x / sqrt(mean(square(x)) + eps), or a variant that is another function.
Graph rms_norm_by_hand(const char* axis, bool eps_inside, bool statistic_is_read = false) {
  return of_x(
      [=](auto& x) {
        const NodeEntry square = use("mean", {use("square", {x})}, {{"axis", axis}, {"keepdims", "True"}});
        const NodeEntry result = use("broadcast_div", {x, eps_inside ? use("sqrt", {plus(square, "1e-5")})
                                                                     : plus(use("sqrt", {square}), "1e-5")});
        return statistic_is_read ? use("broadcast_add", {result, square}) : result;
      },
      kRows);
}

Graph scaled_rms_norm(std::initializer_list<int64_t> scale) {
  const NodeEntry x = var("x"), g = var("g");
  const NodeEntry norm = use("_contrib_rms_norm", {x, use("_ones", {}, {{"shape", "(4,)"}})});
  return make_graph({x, g}, {kRows, {Shape(scale), DType::kFloat32}}, {use("broadcast_mul", {g, norm})});
}

// LayerNorm without scale and shift, times an array of this shape.
Graph scaled_norm(std::initializer_list<int64_t> scale) {
  const NodeEntry x = var("x"), g = var("g");
  const NodeEntry norm =
      use("LayerNorm", {x, use("_ones", {}, {{"shape", "(4,)"}}), use("_zeros", {}, {{"shape", "(4,)"}})});
  return make_graph({x, g}, {kRows, {Shape(scale), DType::kFloat32}}, {use("broadcast_mul", {norm, g})});
}

Graph picked_logarithm(const char* axis) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry loss = use("pick", {use("log_softmax", {x}, {{"axis", axis}}), y});
  return make_graph({x, y}, {float32({4, 3}), float32({4})}, {loss});
}

// sum(one_hot(y) * log_softmax(x)) along the classes.
Graph marked_logarithm(const char* on_value) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry marks = use("one_hot", {y}, {{"depth", "3"}, {"on_value", on_value}});
  const NodeEntry product = use("elemwise_mul", {marks, use("log_softmax", {x})});
  return make_graph({x, y}, {float32({4, 3}), float32({4})}, {use("sum", {product}, {{"axis", "-1"}})});
}

Graph gelu_by_hand(const char* function) {
  return of_x([=](auto& x) {
    const NodeEntry half = scaled(x, "0.5");
    return use("elemwise_mul", {half, plus(use(function, {scaled(x, "0.70710678118654752")}), "1")});
  });
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + factor * x^3)))
Graph gelu_with_tanh(const char* factor) {
  return of_x([=](auto& x) {
    const NodeEntry cube = use("elemwise_mul", {use("square", {x}), x});
    const NodeEntry sum = use("elemwise_add", {x, scaled(cube, factor)});
    const NodeEntry grown = plus(use("tanh", {scaled(sum, "0.7978845608028654")}), "1");
    return use("elemwise_mul", {scaled(x, "0.5"), grown});
  });
}

Graph gate(const char* function) {
  return of_x([=](auto& x) { return use("elemwise_mul", {x, use(function, {x})}); });
}

// softmax(q k^T / 8) v; softmax along the keys, or along another axis.
Graph attention_by_hand(const char* axis) {
  const NodeEntry q = var("q"), k = var("k"), v = var("v");
  const TensorSpec spec = float32({2, 64, 8});
  const NodeEntry scores = scaled(use("batch_dot", {q, k}, {{"transpose_b", "True"}}), "0.125");
  return make_graph({q, k, v}, {spec, spec, spec}, {use("batch_dot", {use("softmax", {scores}, {{"axis", axis}}), v})});
}

// (2, 64, 3 heads, 8) as (6, 64, 8), with the heads moved in front of the lengths, or not moved.
Graph attention_of_heads(bool moved) {
  std::vector<NodeEntry> inputs, operands;
  for (const char* name : {"q", "k", "v"}) {
    inputs.push_back(var(name));
    operands.push_back(reshaped(moved ? transposed(inputs.back(), "(0, 2, 1, 3)") : inputs.back(), "(6, 64, 8)"));
  }
  const TensorSpec spec = float32({2, 64, 3, 8});
  return make_graph(inputs, {spec, spec, spec}, {use("_flash_attention", operands)});
}

// Attention of 4 heads of queries whose keys and values are repeated: those of 2 heads, or whole lengths.
Graph attention_of_repeated(const char* axis) {
  const NodeEntry q = var("q"), k = var("k"), v = var("v");
  const TextAttrs twice{{"repeats", "2"}, {"axis", axis}};
  const TensorSpec keys = axis == std::string_view("1") ? float32({2, 2, 6, 8}) : float32({2, 4, 3, 8});
  return make_graph({q, k, v}, {float32({2, 4, 3, 8}), keys, keys},
                    {use("_flash_attention", {q, use("repeat", {k}, twice), use("repeat", {v}, twice)})});
}

// Attention of three dense layers whose weights are rows of one array: in order, or exchanged.
Graph attention_of_projections(bool in_order) {
  const NodeEntry x = var("x"), w = var("w");
  std::vector<NodeEntry> operands;
  for (const auto& [begin, end] : {std::pair{"0", "8"},
                                   {in_order ? "8" : "16", in_order ? "16" : "24"},
                                   {in_order ? "16" : "8", in_order ? "24" : "16"}}) {
    const NodeEntry dense = use("FullyConnected", {x, rows(w, begin, end)},
                                {{"num_hidden", "8"}, {"no_bias", "True"}, {"flatten", "False"}});
    operands.push_back(reshaped(dense, "(0, 0, 2, 4)"));
  }
  return make_graph({x, w}, {float32({2, 64, 8}), float32({24, 8})},
                    {use("_flash_attention", operands, {{"heads_inside", "True"}})});
}

// LayerNorm of summand(x) + y; the sum is read elsewhere, too.
Graph norm_of_sum(const std::function<NodeEntry(const NodeEntry&)>& summand, std::initializer_list<int64_t> addend) {
  const NodeEntry x = var("x"), y = var("y"), gamma = var("gamma"), beta = var("beta");
  const NodeEntry sum = use("broadcast_add", {summand(x), y});
  return make_graph({x, y, gamma, beta}, {kRows, {Shape(addend), DType::kFloat32}, kVector, kVector},
                    {use("LayerNorm", {sum, gamma, beta}), sum});
}

Graph fused_chain(int64_t size, const char* native) {
  const std::string program = "_mul_scalar(0, scalar=2.0); _plus_scalar(1, scalar=1.0) -> 2@0";
  return of_x(
      [&](auto& x) {
        return use("_fused_elementwise", {x}, {{"num_args", "1"}, {"program", program}, {"native", native}});
      },
      float32({size}));
}

// x w^T, with w transposed in front of the product; is_read_elsewhere: the transposed matrix has another reader.
Graph product_of_transposed(bool is_read_elsewhere) {
  const NodeEntry x = var("x"), w = var("w"), w_transposed = transposed(w, "(1, 0)");
  std::vector<NodeEntry> outputs{use("dot", {x, w_transposed})};
  if (is_read_elsewhere) outputs.push_back(use("exp", {w_transposed}));
  return make_graph({x, w}, {kState, kWeight}, outputs);
}

Graph around_product(const std::function<NodeEntry(const NodeEntry&)>& what) {
  const NodeEntry x = var("x"), w = var("w");
  return make_graph({x, w}, {float32({64, 48}), float32({48, 40})}, {what(use("dot", {x, w}))});
}

Graph product_plus(std::initializer_list<int64_t> addend) {
  const NodeEntry x = var("x"), w = var("w"), c = var("c");
  return make_graph({x, w, c}, {float32({64, 48}), float32({48, 40}), {Shape(addend), DType::kFloat32}},
                    {use("broadcast_add", {use("dot", {x, w}), c})});
}

// ---- layers
struct Layers {
  std::vector<NodeEntry> inputs;
  std::vector<TensorSpec> specs;
  NodeEntry input(const std::string& name, const TensorSpec& spec) {
    inputs.push_back(var(name));
    specs.push_back(spec);
    return inputs.back();
  }
  NodeEntry convolution(const NodeEntry& x, const std::string& name, const char* filters, const TensorSpec& weight) {
    return use("Convolution", {x, input(name, weight)},
               {{"kernel", "(3, 3)"}, {"num_filter", filters}, {"pad", "(1, 1)"}, {"no_bias", "True"}});
  }
  NodeEntry norm(const NodeEntry& x) {
    const TensorSpec four = float32({4});
    return use("BatchNorm",
               {x, input("gamma", four), input("beta", four), input("mean", four), input("variance", four)});
  }
  Graph graph(const NodeEntry& output, bool train = false) const { return make_graph(inputs, specs, {output}, train); }
};

NodeEntry small_convolution(Layers& layers) {
  return layers.convolution(layers.input("x", float32({2, 4, 5, 5})), "w", "4", float32({4, 4, 3, 3}));
}

Graph activation_behind_layer(const char* op) {
  Layers layers;
  return layers.graph(use(op, {small_convolution(layers)}));
}

Graph layer_plus(const char* op, const TensorSpec& addend, bool activation) {
  Layers layers;
  const NodeEntry layer = small_convolution(layers);
  NodeEntry sum = use(op, {layer, layers.input("r", addend)});
  if (activation) sum = use("relu", {sum});
  return layers.graph(sum);
}

Graph norm_and(const char* act_type) {
  Layers layers;
  const NodeEntry x = layers.input("x", float32({2, 4, 5, 5}));
  return layers.graph(use("Activation", {layers.norm(x)}, {{"act_type", act_type}}), true);
}

Graph norm_behind_layer(bool train) {
  Layers layers;
  return layers.graph(layers.norm(small_convolution(layers)), train);
}

Graph chain_of_convolutions(int length) {
  Layers layers;
  NodeEntry e = layers.input("x", float32({2, 16, 12, 12}));
  for (int i = 0; i < length; ++i)
    e = use("relu", {layers.convolution(e, "w" + std::to_string(i), "16", float32({16, 16, 3, 3}))});
  return layers.graph(e);
}

Graph large_convolutions(bool channels_last) {
  Layers layers;
  NodeEntry e = layers.input("x", float32({2, 64, 24, 24}));
  for (int i = 0; i < 2; ++i) e = layers.convolution(e, "w" + std::to_string(i), "64", float32({64, 64, 3, 3}));
  Graph graph = layers.graph(e);
  if (channels_last) run_rewrite(graph, RewriteDatabase::current()->at("channels_last"));
  return graph;
}

// An LSTM and its gradient in one graph; gives_reserve: the reserve of the LSTM is an output, too.
Graph recurrent_layer_and_gradient(bool gives_reserve) {
  const TextAttrs attrs{{"mode", "lstm"}, {"state_size", "2"}, {"num_layers", "1"}};
  const NodeEntry x = var("x"), weights = var("weights"), h = var("h"), c = var("c"), head = var("head");
  const NodeEntry out = use("RNN", {x, weights, h, c}, attrs), reserve = output(out, 1);
  const NodeEntry grads = use("_backward_RNN", {x, weights, h, c, out, reserve, head}, attrs);
  std::vector<NodeEntry> outputs{output(grads, 1)};
  if (gives_reserve) outputs.push_back(reserve);
  return make_graph({x, weights, h, c, head},
                    {float32({3, 2, 4}), float32({64}), float32({1, 2, 2}), float32({1, 2, 2}), float32({3, 2, 2})},
                    outputs);
}

// Weights and biases of a layer as the vector that RNN takes.
Graph joined_parameters(bool train) {
  const NodeEntry of_input = var("of_input"), of_state = var("of_state"), bias = var("bias"), other = var("other");
  const auto flat = [](const NodeEntry& e) { return use("Reshape", {e}, {{"shape", "(-1,)"}}); };
  const NodeEntry all = use("_rnn_param_concat", {flat(of_input), flat(of_state), bias, other}, {{"dim", "0"}});
  return make_graph({of_input, of_state, bias, other}, {float32({8, 4}), float32({8, 2}), float32({8}), float32({8})},
                    {use("negative", {all})}, train);
}

// The graph after fuse_addend, on which fuse_activation_of_sum fires.
Graph after_fuse_addend(Graph graph) {
  run_rewrite(graph, RewriteDatabase::current()->at("fuse_addend"));
  return graph;
}

// ---- bytes
NodeEntry with_range(const char* op, const NodeEntry& e, bool known) {
  const TextAttrs range{{"min_calib_range", "0"}, {"max_calib_range", "1"}};
  return use(op, {e, output(e, 1), output(e, 2)}, known ? range : TextAttrs());
}

struct ByteLayers : Layers {
  NodeEntry one(const std::string& name) { return input(name, float32({1})); }
  NodeEntry bytes(const std::string& name, std::initializer_list<int64_t> dims) {
    return input(name, {Shape(dims), DType::kInt8});
  }
  NodeEntry layer(bool known) {
    const NodeEntry sums =
        use("_contrib_quantized_conv",
            {bytes("x", {2, 4, 5, 5}), bytes("w", {4, 4, 1, 1}), one("a"), one("b"), one("c"), one("d")},
            {{"kernel", "(1, 1)"}, {"num_filter", "4"}, {"no_bias", "True"}});
    return with_range("_contrib_requantize", sums, known);
  }
};

Graph quantized_layer(bool known) {
  ByteLayers layers;
  return layers.graph(layers.layer(known));
}

Graph after_fuse_requantize(Graph graph) {
  run_rewrite(graph, RewriteDatabase::current()->at("fuse_requantize"));
  return graph;
}

Graph quantized_layer_plus(bool known) {
  ByteLayers layers;
  const NodeEntry layer = layers.layer(true);
  const NodeEntry sum = use(
      "_contrib_quantized_elemwise_add",
      {layer, layers.bytes("y", {2, 4, 5, 5}), output(layer, 1), output(layer, 2), layers.one("e"), layers.one("f")});
  return after_fuse_requantize(layers.graph(with_range("_contrib_requantize", sum, known)));
}

Graph relu_behind_quantized_layer(bool known) {
  ByteLayers layers;
  const NodeEntry layer = layers.layer(known);
  return after_fuse_requantize(
      layers.graph(use("_contrib_quantized_act", {layer, output(layer, 1), output(layer, 2)}, {{"act_type", "relu"}})));
}

// ---- loops
FileGraph rows_and_state() { return FileGraph().input("x", kRows).input("h", kState).input("w", kWeight); }
using Attrs = std::vector<std::pair<std::string, std::string>>;
const Attrs kFile4{{"num_hidden", "4"}, {"no_bias", "True"}};

// h = body(x[t], h, w). outputs: names of the stacked rows, if the body has any, and of the last h.
Graph loop(const FileGraph& body, size_t num_out, std::vector<std::string> outputs, bool train = false) {
  FileGraph graph = rows_and_state();
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}}, {{"w", "v"}}, num_out, body);
  return graph.outputs(std::move(outputs)).graph(train);
}

FileGraph body_inputs() { return FileGraph().input("d").input("s").input("v"); }

// Only the state is multiplied by w.
FileGraph plain_step() {
  return body_inputs()
      .node("FullyConnected", "p", {"s", "v"}, kFile4)
      .node("elemwise_add", "n", {"d", "p"})
      .outputs({"n", "n"});
}

// The state and the row are multiplied by w: the product of the row needs no loop.
FileGraph step_with_product_of_rows() {
  return body_inputs()
      .node("FullyConnected", "q", {"d", "v"}, kFile4)
      .node("FullyConnected", "p", {"s", "v"}, kFile4)
      .node("elemwise_add", "n", {"q", "p"})
      .outputs({"n", "n"});
}

// The state does not change.
FileGraph step_that_keeps_the_state() {
  return body_inputs()
      .node("FullyConnected", "p", {"s", "v"}, kFile4)
      .node("elemwise_add", "n", {"d", "p"})
      .node("_copy", "same", {"s"})
      .outputs({"n", "same"});
}

// The output of the loop is the rows of its data.
FileGraph step_that_copies_rows() {
  return body_inputs()
      .node("FullyConnected", "p", {"s", "v"}, kFile4)
      .node("elemwise_add", "n", {"d", "p"})
      .node("_copy", "same", {"d"})
      .outputs({"same", "n"});
}

// The output of the loop is a product of the state.
FileGraph step_with_product_of_results() {
  return body_inputs()
      .node("elemwise_add", "n", {"d", "s"})
      .node("FullyConnected", "y", {"n", "v"}, kFile4)
      .outputs({"y", "n"});
}

Graph two_loops(bool same_data) {
  FileGraph graph = FileGraph().input("x", kRows).input("z", kRows).input("h", kState);
  const FileGraph body = FileGraph().input("d").input("s").node("elemwise_add", "n", {"d", "s"}).outputs({"n"});
  const FileGraph other = FileGraph().input("d").input("s").node("elemwise_sub", "n", {"d", "s"}).outputs({"n"});
  add_foreach(graph, "a", {{"x", "d"}}, {{"h", "s"}}, {}, 0, body);
  add_foreach(graph, "b", {{same_data ? "x" : "z", "d"}}, {{"h", "s"}}, {}, 0, other);
  return graph.node("elemwise_add", "both", {"a", "b"}).outputs({"both"}).graph();
}

Graph loop_over_two(bool same_data) {
  FileGraph graph = FileGraph().input("x", kRows).input("z", kRows).input("h", kState);
  const FileGraph body = FileGraph()
                             .input("d")
                             .input("e")
                             .input("s")
                             .node("elemwise_mul", "m", {"d", "e"})
                             .node("elemwise_add", "n", {"m", "s"})
                             .outputs({"n"});
  add_foreach(graph, "a", {{"x", "d"}, {same_data ? "x" : "z", "e"}}, {{"h", "s"}}, {}, 0, body);
  return graph.outputs({"a"}).graph();
}

// Two layers with a state each in one loop. The second multiplies the result of the first.
Graph stacked_layers(bool train) {
  FileGraph graph = FileGraph().input("x", kRows).input("h", kState).input("g", kState).input("w", kWeight);
  const FileGraph body = FileGraph()
                             .input("d")
                             .input("s")
                             .input("t")
                             .input("v")
                             .node("FullyConnected", "a", {"s", "v"}, kFile4)
                             .node("elemwise_add", "b", {"d", "a"})
                             .node("tanh", "first", {"b"})
                             .node("FullyConnected", "c", {"first", "v"}, kFile4)
                             .node("FullyConnected", "e", {"t", "v"}, kFile4)
                             .node("elemwise_add", "f", {"c", "e"})
                             .node("tanh", "second", {"f"})
                             .outputs({"second", "first", "second"});
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}, {"g", "t"}}, {{"w", "v"}}, 1, body);
  return graph.outputs({"loop.0", "loop.1", "loop.2"}).graph(train);
}

// A loop over the rows of each row, whose sum is added to the state; inner_reads_state: it starts at the state.
Graph loop_in_loop(bool inner_reads_state) {
  FileGraph graph = FileGraph().input("x", kRows).input("h", kVector).input("z", kVector);
  const FileGraph inner = FileGraph().input("r").input("a").node("elemwise_add", "n", {"r", "a"}).outputs({"n"});
  FileGraph body = FileGraph().input("d").input("s");
  if (!inner_reads_state) body.input("z");
  add_foreach(body, "inner", {{"d", "r"}}, {{inner_reads_state ? "s" : "z", "a"}}, {}, 0, inner);
  body.node("elemwise_add", "next", {"inner", "s"}).outputs({"next"});
  std::vector<Slot> captured;
  if (!inner_reads_state) captured.push_back({"z", "z"});
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}}, captured, 0, body);
  return graph.outputs({"loop"}).graph();
}

// h += row, for rows of this size.
Graph running_sum(int64_t size) {
  FileGraph graph = FileGraph().input("x", float32({5, size})).input("h", float32({size}));
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}}, {}, 0,
              FileGraph().input("d").input("s").node("elemwise_add", "n", {"d", "s"}).outputs({"n"}));
  return graph.outputs({"loop"}).graph();
}

Graph rows_of_loop(const char* begin) {
  FileGraph graph = rows_and_state();
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}}, {{"w", "v"}}, 1, plain_step());
  return graph.node("slice_axis", "last", {"loop.0"}, {{"axis", "0"}, {"begin", begin}, {"end", "None"}})
      .outputs({"last", "loop.1"})
      .graph();
}

// Caches of keys and values that are written, attended to, and reordered in each iteration; the values that attention
// reads are those of the cache, or of the cache before it was written.
Graph loop_over_words(const char* values) {
  const TensorSpec cache = float32({3, 2, 6, 4});
  FileGraph graph = FileGraph()
                        .input("x", float32({5, 3, 2, 1, 4}))
                        .input("k", cache)
                        .input("v", cache)
                        .input("parents", float32({3}))
                        .node("_zeros", "first", {}, {{"shape", "(1,)"}, {"dtype", "int64"}});
  const FileGraph body = FileGraph()
                             .input("d")
                             .input("key")
                             .input("value")
                             .input("rows")
                             .input("p")
                             .node("_contrib_index_copy", "keys", {"key", "rows", "d"}, {{"axis", "2"}})
                             .node("_contrib_index_copy", "values", {"value", "rows", "d"}, {{"axis", "2"}})
                             .node("_contrib_flash_attention", "mixed", {"d", "keys", values})
                             .node("take", "next_keys", {"keys", "p"}, {{"axis", "0"}})
                             .node("take", "next_values", {"values", "p"}, {{"axis", "0"}})
                             .outputs({"mixed", "next_keys", "next_values"});
  add_foreach(graph, "loop", {{"x", "d"}}, {{"k", "key"}, {"v", "value"}}, {{"first", "rows"}, {"parents", "p"}}, 1,
              body);
  return graph.outputs({"loop.0", "loop.1", "loop.2"}).graph();
}

Graph loop_over_rows(int64_t rows) {
  FileGraph graph = FileGraph().input("x", float32({rows, 2, 4})).input("h", kState);
  const FileGraph body = FileGraph().input("d").input("s").node("elemwise_add", "n", {"d", "s"}).outputs({"n", "n"});
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}}, {}, 1, body);
  return graph.outputs({"loop.0", "loop.1"}).graph();
}

// ---- branches
FileGraph sum_is_positive() {
  return FileGraph()
      .input("x")
      .node("sum", "total", {"x"})
      .node("_greater_scalar", "p", {"total"}, {{"scalar", "0"}})
      .outputs({"p"});
}

// Both branches begin with the product of x and w, or only one of them does.
Graph branches(bool common) {
  FileGraph graph = FileGraph().input("x", kWeight).input("w", kWeight);
  const auto branch = [](const char* op, const char* factor) {
    return FileGraph()
        .input("x")
        .input("w")
        .node(op, "m", {"x", "w"})
        .node("_mul_scalar", "y", {"m"}, {{"scalar", factor}})
        .outputs({"y"});
  };
  add_cond(graph, "choice", {"x", "w"}, sum_is_positive(), branch("dot", "2"),
           branch(common ? "dot" : "elemwise_mul", "3"));
  return graph.outputs({"choice"}).graph();
}

// exp(w) in front of a cond, read by one branch or by both.
Graph work_for_branches(bool one) {
  FileGraph graph = FileGraph().input("x", kVector).input("w", kVector).node("exp", "e", {"w"});
  const FileGraph reads = FileGraph().input("x").input("e").node("elemwise_add", "y", {"x", "e"}).outputs({"y"});
  const FileGraph other = FileGraph().input("x").node("relu", "y", {"x"}).outputs({"y"});
  add_cond(graph, "choice", {"x", "e"}, sum_is_positive(), reads, one ? other : reads);
  return graph.outputs({"choice"}).graph();
}

// A branch chosen by the sum of the output of the operator `source`.
Graph branch_by(const char* source) {
  FileGraph graph = FileGraph().input("x", kVector).node(source, "p", {}, {{"shape", "(4,)"}});
  const FileGraph predicate = FileGraph()
                                  .input("p")
                                  .node("sum", "total", {"p"})
                                  .node("_greater_scalar", "q", {"total"}, {{"scalar", "0"}})
                                  .outputs({"q"});
  const auto branch = [](const char* op) { return FileGraph().input("x").node(op, "y", {"x"}).outputs({"y"}); };
  add_cond(graph, "choice", {"x", "p"}, predicate, branch("relu"), branch("tanh"));
  return graph.outputs({"choice"}).graph();
}

}  // namespace

Graph lstm_loop(const LstmLoop& how, bool train) {
  const TextAttrs gates{{"num_hidden", "16"}};
  FileGraph graph = FileGraph()
                        .input("x", kRows)
                        .input("h0", kState)
                        .input("c0", kState)
                        .input("w", float32({16, 4}))
                        .input("u", float32({16, 4}))
                        .input("b", float32({16}));
  const FileGraph body = FileGraph()
                             .input("d")
                             .input("s")
                             .input("t")
                             .input("w")
                             .input("u")
                             .input("b")
                             .node("FullyConnected", "i2h", {"d", "w", "b"}, gates)
                             .node("FullyConnected", "h2h", {"s", "u", "b"}, gates)
                             .node("elemwise_add", "sum", {"i2h", "h2h"})
                             .node("SliceChannel", "gates", {"sum"}, {{"num_outputs", "4"}})
                             .node("sigmoid", "i", {std::string(how.forget) == "gates.1" ? "gates.0" : "gates.1"})
                             .node("sigmoid", "f", {how.forget})
                             .node("tanh", "g", {"gates.2"})
                             .node("Activation", "o", {"gates.3"}, {{"act_type", "sigmoid"}})
                             .node("elemwise_mul", "kept", {"t", "f"})
                             .node("elemwise_mul", "added", {"i", "g"})
                             .node("elemwise_add", "c", {"kept", "added"})
                             .node("tanh", "shown", {"c"})
                             .node("broadcast_mul", "h", {"shown", "o"})
                             .node("_mul_scalar", "half", {"h"}, {{"scalar", "0.5"}})
                             .node("elemwise_add", "mixed", {"c", "t"})
                             .outputs({how.output, "h", how.next_memory});
  add_foreach(graph, "loop", {{"x", "d"}}, how.carries, {{"w", "w"}, {"u", "u"}, {"b", "b"}}, 1, body);
  return graph.outputs({"loop.0", "loop.1", "loop.2"}).graph(train);
}

const std::map<std::string, RuleExample>& rule_examples() {
  static const std::map<std::string, RuleExample> all{
      {"expand_composed",
       {[] { return of_x([](auto& x) {
               return use("_npi_mean", {use("_npi_add", {x, x})});
             }); },
        [] { return of_x([](auto& x) {
               return use("mean", {use("broadcast_add", {x, x})});
             }); }}},
      {"merge",
       {[] { return of_x([](auto& x) {
               return use("elemwise_mul", {use("tanh", {x}), use("tanh", {x})});
             }); },
        [] { return of_x([](auto& x) {
               return use("elemwise_mul", {use("tanh", {x}), use("relu", {x})});
             }); }}},
      {"remove_unused",
       {[] {
          Graph graph = of_x([](auto& x) { return use("tanh", {x}); });
          const Op& relu = Runtime::get().ops().at("relu");
          graph.add(relu, relu.default_params, {{graph.inputs()[0], 0}});
          return graph;
        },
        [] { return of_x([](auto& x) { return use("tanh", {x}); }); }}},
      {"trim_control",
       {[] { return loop(plain_step(), 1, {"loop.1"}); },
        [] {
          return loop(plain_step(), 1, {"loop.0", "loop.1"});
        }}},
      {"drop_identity",
       {[] { return of_x([](auto& x) { return use("tanh", {use("identity", {x})}); }); },
        [] { return of_x([](auto& x) { return use("tanh", {use("BlockGrad", {x})}); }); }}},
      {"drop_identity in canonicalize_joint",
       {[] { return of_x([](auto& x) { return use("tanh", {use("BlockGrad", {x})}); }); },
        [] { return of_x([](auto& x) { return use("BlockGrad", {x}); }); }}},
      {"drop_trivial_view",
       {[] { return of_x([](auto& x) { return use("tanh", {reshaped(x, "(4,)")}); }); },
        [] { return of_x([](auto& x) { return use("tanh", {reshaped(x, "(2, 2)")}); }); }}},
      {"neutral_scalar",
       {[] { return of_x([](auto& x) { return use("tanh", {scaled(x, "1")}); }); },
        [] { return of_x([](auto& x) { return use("tanh", {scaled(x, "0")}); }); }}},
      {"neutral_term",
       {[] { return of_x([](auto& x) {
               return use("tanh", {use("elemwise_add", {x, use("zeros_like", {x})})});
             }); },
        [] { return of_x([](auto& x) {
               return use("tanh", {use("elemwise_sub", {use("zeros_like", {x}), x})});
             }); }}},
      {"shorten_views",
       {[] {
          return of_x([](auto& x) { return use("relu", {reshaped(reshaped(use("tanh", {x}), "(2, 2)"), "(4,)")}); });
        },
        [] {
          return of_x([](auto& x) { return use("relu", {reshaped(reshaped(use("tanh", {x}), "(2, 2)"), "(4, 1)")}); });
        }}},
      {"join_transposes",
       {[] {
          return of_x([](auto& x) { return use("relu", {transposed(transposed(x, "(1, 0, 2)"), "(0, 2, 1)")}); },
                      kRows);
        },
        [] { return of_x([](auto& x) { return use("relu", {transposed(x, "(1, 0, 2)")}); }, kRows); }}},
      {"transpose_of_ones",
       {[] {
          return of_x([](auto& x) { return use("relu", {transposed(x, "(0, 2, 1, 3)")}); }, float32({2, 1, 3, 4}));
        },
        [] {
          return of_x([](auto& x) { return use("relu", {transposed(x, "(1, 0, 3, 2)")}); }, float32({2, 1, 3, 4}));
        }}},
      {"join_reshapes",
       {[] { return of_x([](auto& x) { return reshaped(reshaped(use("tanh", {x}), "(2, 2)"), "(4, 1)"); }); },
        [] { return of_x([](auto& x) { return reshaped(reshaped(use("tanh", {x}), "(2, 2)"), "(0, 1, -1)"); }); }}},
      {"join_casts",
       {[] { return of_x([](auto& x) { return cast_to(cast_to(x, "float64"), "float16"); }); },
        [] { return of_x([](auto& x) { return cast_to(cast_to(x, "float16"), "float32"); }); }}},
      {"join_slices",
       {[] { return of_x([](auto& x) { return rows(rows(x, "1", "None"), "-1", "None"); }, kRows); },
        [] { return of_x([](auto& x) { return rows(rows(x, "4", "None"), "-2", "None"); }, kRows); }}},
      {"split_of_join", {[] { return split_of_two("Concat", true); }, [] { return split_of_two("Concat", false); }}},
      {"split_of_join in canonicalize_joint",
       {[] { return first_part_of_two("Concat"); }, [] { return first_part_of_two("elemwise_add"); }}},
      {"part_of_stack",
       {[] {
          return of_x([](auto& x) { return rows(use("stack", {x, use("tanh", {x})}, {{"num_args", "2"}}), "1", "2"); });
        },
        [] {
          return of_x([](auto& x) { return rows(use("stack", {x, use("tanh", {x})}, {{"num_args", "2"}}), "0", "2"); });
        }}},
      {"join_repeats",
       {[] {
          return of_x(
              [](auto& x) {
                return use("broadcast_axis", {use("broadcast_to", {x}, {{"shape", "(0, 3, 4)"}})},
                           {{"axis", "0"}, {"size", "2"}});
              },
              float32({1, 1, 4}));
        },
        [] { return repeated_like("None"); }}},
      {"join_repeats in canonicalize_joint",
       {[] { return repeated_like("None"); }, [] { return repeated_like("(0,)"); }}},
      {"repeat_in_place",
       {[] {
          return repeated_plus({1, 4});
        },
        [] {
          return repeated_plus({1, 1});
        }}},
      {"absorb_integers",
       {[] {
          return of_x([](auto& x) { return use("elemwise_sub", {x, x}); }, {Shape{4}, DType::kInt32});
        },
        [] { return of_x([](auto& x) {
               return use("elemwise_sub", {x, x});
             }); }}},
      {"square_of_self",
       {[] { return of_x([](auto& x) {
               return use("elemwise_mul", {x, x});
             }); },
        [] { return of_x([](auto& x) {
               return use("elemwise_mul", {x, use("tanh", {x})});
             }); }}},
      {"reciprocal",
       {[] { return of_x([](auto& x) {
               return use("_rdiv_scalar", {x}, {{"scalar", "1"}});
             }); },
        [] { return of_x([](auto& x) {
               return use("_rdiv_scalar", {x}, {{"scalar", "2"}});
             }); }}},
      {"opposite",
       {[] { return of_x([](auto& x) { return scaled(x, "-1"); }); },
        [] { return of_x([](auto& x) { return scaled(x, "-2"); }); }}},
      {"small_power",
       {[] { return of_x([](auto& x) { return power(x, "3"); }); },
        [] { return of_x([](auto& x) { return power(x, "2.5"); }); }}},
      {"reciprocal_root",
       {[] { return of_x([](auto& x) { return use("reciprocal", {use("sqrt", {x})}); }); },
        [] { return of_x([](auto& x) { return use("reciprocal", {use("cbrt", {x})}); }); }}},
      {"absorb",
       {[] { return of_x([](auto& x) {
               return use("elemwise_div", {x, x});
             }); },
        [] {
          return of_x([](auto& x) { return use("elemwise_div", {x, x}); }, {Shape{4}, DType::kInt32});
        }}},
      {"root_power",
       {[] { return of_x([](auto& x) { return power(x, "0.5"); }); },
        [] { return of_x([](auto& x) { return power(x, "2"); }); }}},
      {"cancel_factors",
       {[] {
          return of_x([](auto& x) { return use("elemwise_div", {use("elemwise_mul", {use("tanh", {x}), x}), x}); });
        },
        [] {
          return of_x(
              [](auto& x) {
                return use("elemwise_div", {use("elemwise_mul", {use("tanh", {x}), x}), x});
              },
              {Shape{4}, DType::kInt32});
        }}},
      {"join_factors",
       {[] { return of_x([](auto& x) {
               return use("_div_scalar", {scaled(x, "3")}, {{"scalar", "7"}});
             }); },
        [] { return of_x([](auto& x) {
               return use("elemwise_div", {scaled(x, "3"), x});
             }); }}},
      {"shape_of_source",
       {[] { return of_x([](auto& x) { return use("shape_array", {use("tanh", {x})}); }); },
        [] { return of_x([](auto& x) { return use("shape_array", {transposed(x, "(1, 0, 2)")}); }, kRows); }}},
      // Must not fire unless the graph is known to be for one size only.
      {"constant_shape", {shape_of_vector, shape_of_vector}},
      {"constant_sizes", {repeated_by_sizes, repeated_by_sizes}},
      {"known_branch", {[] { return branch_by("_ones"); }, [] { return branch_by("_random_uniform"); }}},
      {"few_iterations in canonicalize_joint", {[] { return loop_over_rows(0); }, [] { return loop_over_rows(2); }}},
      {"few_iterations", {[] { return loop_over_rows(1); }, [] { return loop_over_rows(2); }}},
      {"log_of_softmax",
       {[] { return of_x([](auto& x) { return use("log", {use("softmax", {x})}); }); },
        [] { return of_x([](auto& x) { return use("log", {use("softmin", {x})}); }); }}},
      {"log_sigmoid",
       {[] { return of_x([](auto& x) { return use("log", {use("sigmoid", {x})}); }); },
        [] { return of_x([](auto& x) { return use("log2", {use("sigmoid", {x})}); }); }}},
      {"softplus",
       {[] { return of_x([](auto& x) { return use("log", {plus(use("exp", {x}), "1")}); }); },
        [] { return of_x([](auto& x) { return use("log", {plus(use("exp", {x}), "2")}); }); }}},
      {"log_sum_exp",
       {[] { return of_x([](auto& x) { return use("log", {summed(use("exp", {x}), "0")}); }, kRows); },
        [] { return of_x([](auto& x) { return use("log", {summed(use("tanh", {x}), "0")}); }, kRows); }}},
      {"log1p",
       {[] { return of_x([](auto& x) { return use("log", {plus(x, "1")}); }); },
        [] { return of_x([](auto& x) { return use("log", {plus(x, "2")}); }); }}},
      {"expm1",
       {[] { return of_x([](auto& x) { return plus(use("exp", {x}), "-1"); }); },
        [] { return of_x([](auto& x) { return plus(use("exp", {x}), "1"); }); }}},
      {"log_softmax",
       {[] {
          return of_x(
              [](auto& x) {
                return use("broadcast_sub", {x, use("log", {summed(use("exp", {x}), "2")})});
              },
              kRows);
        },
        [] {
          return of_x(
              [](auto& x) {
                return use("broadcast_sub", {x, use("log", {summed(use("exp", {x}), "(1, 2)")})});
              },
              kRows);
        }}},
      {"softmax", {[] { return quotient_of_exponentials("2"); }, [] { return quotient_of_exponentials("(1, 2)"); }}},
      {"layer_norm", {[] { return norm_by_hand("-1", true); }, [] { return norm_by_hand("1", true); }}},
      {"scale_layer_norm",
       {[] {
          return scaled_norm({1, 1, 4});
        },
        [] {
          return scaled_norm({1, 2, 1});
        }}},
      {"rms_norm", {[] { return rms_norm_by_hand("-1", true); }, [] { return rms_norm_by_hand("-1", false); }}},
      {"scale_rms_norm",
       {[] { return scaled_rms_norm({4}); },
        [] {
          return scaled_rms_norm({2, 1});
        }}},
      {"one_hot_pick", {[] { return marked_logarithm("1"); }, [] { return marked_logarithm("0.9"); }}},
      {"softmax_pick", {[] { return picked_logarithm("-1"); }, [] { return picked_logarithm("0"); }}},
      {"gelu", {[] { return gelu_by_hand("erf"); }, [] { return gelu_by_hand("tanh"); }}},
      {"gelu_tanh", {[] { return gelu_with_tanh("0.044715"); }, [] { return gelu_with_tanh("0.05"); }}},
      {"silu", {[] { return gate("sigmoid"); }, [] { return gate("tanh"); }}},
      {"add_layer_norm",
       {[] {
          return norm_of_sum([](auto& x) { return use("tanh", {x}); }, {5, 2, 4});
        },
        [] {
          return norm_of_sum([](auto& x) { return use("tanh", {x}); }, {2, 4});
        }}},
      {"qkv_merge", {[] { return attention_of_projections(true); }, [] { return attention_of_projections(false); }}},
      {"heads_inside", {[] { return attention_of_heads(true); }, [] { return attention_of_heads(false); }}},
      {"attention", {[] { return attention_by_hand("-1"); }, [] { return attention_by_hand("1"); }}},
      {"transposed_operands",
       {[] { return product_of_transposed(false); }, [] { return product_of_transposed(true); }}},
      {"transposed_product",
       {[] { return around_product([](auto& y) { return transposed(y, "(1, 0)"); }); },
        [] { return around_product([](auto& y) {
               return use("elemwise_add", {y, use("tanh", {y})});
             }); }}},
      {"scaled_product",
       {[] { return around_product([](auto& y) { return scaled(y, "0.125"); }); },
        [] { return around_product([](auto& y) { return scaled(y, "0"); }); }}},
      {"product_plus",
       {[] {
          return product_plus({64, 40});
        },
        [] {
          return product_plus({1, 40});
        }}},
      {"shared_keys", {[] { return attention_of_repeated("1"); }, [] { return attention_of_repeated("2"); }}},
      {"plain_amp_casts",
       {[] { return of_x([](auto& x) {
               return use("amp_cast", {use("exp", {x})}, {{"dtype", "float16"}});
             }); },
        [] { return of_x([](auto& x) {
               return use("Cast", {use("exp", {x})}, {{"dtype", "float16"}});
             }); }}},
      {"plain_leaky_relu",
       {[] { return of_x([](auto& x) {
               return use("LeakyReLU", {x}, {{"act_type", "leaky"}});
             }); },
        [] { return of_x([](auto& x) {
               return use("LeakyReLU", {x}, {{"act_type", "rrelu"}});
             }); }}},
      {"rnn_cell", {[] { return lstm_loop({}); }, [] { return lstm_loop({.forget = "gates.0"}); }}},
      {"merge_loops", {[] { return two_loops(true); }, [] { return two_loops(false); }}},
      {"unchanged_carries",
       {[] {
          return loop(step_that_keeps_the_state(), 1, {"loop.0", "loop.1"});
        },
        [] {
          return loop(plain_step(), 1, {"loop.0", "loop.1"});
        }}},
      {"share_loop_slots", {[] { return loop_over_two(true); }, [] { return loop_over_two(false); }}},
      {"loops_of_rows_first", {[] { return loop_in_loop(false); }, [] { return loop_in_loop(true); }}},
      {"split_loops", {[] { return stacked_layers(true); }, [] { return stacked_layers(false); }}},
      {"push_before_loop",
       {[] {
          return loop(step_with_product_of_rows(), 1, {"loop.0", "loop.1"});
        },
        [] {
          return loop(plain_step(), 1, {"loop.0", "loop.1"});
        }}},
      {"push_behind_loop",
       {[] {
          return loop(step_with_product_of_results(), 1, {"loop.0", "loop.1"});
        },
        [] {
          return loop(plain_step(), 1, {"loop.0", "loop.1"});
        }}},
      {"copied_rows",
       {[] {
          return loop(step_that_copies_rows(), 1, {"loop.0", "loop.1"});
        },
        [] {
          return loop(plain_step(), 1, {"loop.0", "loop.1"});
        }}},
      {"keep_last_rows", {[] { return rows_of_loop("-1"); }, [] { return rows_of_loop("0"); }}},
      {"ordered_caches", {[] { return loop_over_words("values"); }, [] { return loop_over_words("value"); }}},
      {"cond_hoist_common", {[] { return branches(true); }, [] { return branches(false); }}},
      {"cond_sink", {[] { return work_for_branches(true); }, [] { return work_for_branches(false); }}},
      {"fold_constants",
       {[] { return of_x([](auto& x) {
               return use("elemwise_mul", {x, use("_ones", {}, {{"shape", "(4,)"}})});
             }); },
        [] {
          return of_x([](auto& x) {
            return use("elemwise_mul", {x, use("_random_uniform", {}, {{"shape", "(4,)"}})});
          });
        }}},
      {"remat", {[] { return value_for_gradient(true); }, [] { return value_for_gradient(false); }}},
      {"channels_last", {[] { return chain_of_convolutions(4); }, [] { return chain_of_convolutions(0); }}},
      {"batch_norm_relu", {[] { return norm_and("relu"); }, [] { return norm_and("tanh"); }}},
      {"bfloat16", {[] { return dense_layer(kVectors, false); }, [] { return dense_layer(kVectors64, false); }}},
      {"float16", {[] { return dense_layer(kVectors, false); }, [] { return dense_layer(kVectors64, false); }}},
      {"prepared_casts",
       {[] { return dense_layer(kVectors, true); }, [] { return dense_layer(kVectors, true, true); }}},
      {"conv_bn_fold", {[] { return norm_behind_layer(false); }, [] { return norm_behind_layer(true); }}},
      {"rnn_parameters", {[] { return joined_parameters(false); }, [] { return joined_parameters(true); }}},
      {"fuse_activation",
       {[] { return activation_behind_layer("relu"); }, [] { return activation_behind_layer("square"); }}},
      {"fuse_addend",
       {[] {
          return layer_plus("elemwise_add", float32({2, 4, 5, 5}), false);
        },
        [] {
          return layer_plus("broadcast_add", float32({1, 4, 1, 1}), false);
        }}},
      {"fuse_activation_of_sum",
       {[] {
          return after_fuse_addend(layer_plus("elemwise_add", float32({2, 4, 5, 5}), true));
        },
        [] {
          return after_fuse_addend(layer_plus("broadcast_add", float32({1, 4, 1, 1}), true));
        }}},
      {"fuse_requantize", {[] { return quantized_layer(true); }, [] { return quantized_layer(false); }}},
      {"fuse_quantized_addend",
       {[] { return quantized_layer_plus(true); }, [] { return quantized_layer_plus(false); }}},
      {"fuse_quantized_relu",
       {[] { return relu_behind_quantized_layer(true); }, [] { return relu_behind_quantized_layer(false); }}},
      {"winograd", {[] { return large_convolutions(true); }, [] { return large_convolutions(false); }}},
      {"overwrite_reserve",
       {[] { return recurrent_layer_and_gradient(false); }, [] { return recurrent_layer_and_gradient(true); }}},
      {"fuse_elementwise",
       {[] { return of_x([](auto& x) { return use("tanh", {use("sigmoid", {x})}); }); },
        [] { return of_x([](auto& x) { return use("softmax", {use("sigmoid", {x})}); }); }}},
      {"native_chains", {[] { return fused_chain(8192, "0"); }, [] { return fused_chain(8192, "1"); }}},
      {"native_loops", {[] { return running_sum(3); }, [] { return running_sum(300); }}},
  };
  return all;
}

const RuleExample* example_of(const Rewrite& row) {
  const auto own = rule_examples().find(row.name + " in " + RewriteDatabase::current()->info(row).name);
  const auto found = own != rule_examples().end() ? own : rule_examples().find(row.name);
  return found == rule_examples().end() ? nullptr : &found->second;
}

}  // namespace hybridnet::graph_testing
