// RNN: layers of recurrent cells over a whole sequence.
#include "kernels/rnn.h"

#include <algorithm>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/gemm.h"
#include "ops/emit.h"
#include "ops/through_float.h"

namespace hybridnet::ops {
namespace {

using kernels::RnnGeometry;
using kernels::RnnMode;

const OpRef kBackward{"_backward_RNN"};

struct RnnParams {
  int32_t state_size = 0, num_layers = 1;
  RnnMode mode = RnnMode::kLstm;
  bool bidirectional = false, state_outputs = false, lstm_state_clip_nan = false, use_sequence_length = false;
  float p = 0;
  std::optional<int32_t> projection_size;
  std::optional<double> lstm_state_clip_min, lstm_state_clip_max;

  bool lstm() const { return mode == RnnMode::kLstm; }
  int num_inputs() const { return 3 + lstm() + use_sequence_length; }
  int cell_input() const { return 3; }
  int length_input() const { return 3 + lstm(); }
  int state_results() const { return state_outputs ? 1 + lstm() : 0; }
  int reserve_output() const { return 1 + state_results(); }
  static void describe(ParamSchema<RnnParams>& schema);
};

// Also says which optional inputs are there.
struct RnnBackwardParams : RnnParams {
  bool dropped = false, state_grad = false, cell_grad = false;
  int forward_inputs() const { return RnnParams::num_inputs(); }
  int num_inputs() const { return forward_inputs() + 3 + state_grad + cell_grad; }
  static void describe(ParamSchema<RnnBackwardParams>& schema);
};

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M RnnParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("state_size", &RnnParams::state_size).at_least(1).doc("Size of the state of each layer and direction.");
  field("num_layers", &RnnParams::num_layers).at_least(1).doc("Number of stacked layers.");
  field("bidirectional", &RnnParams::bidirectional)
      .default_value(false)
      .doc("Each layer also reads the sequence backwards.");
  field("mode", &RnnParams::mode)
      .choice("gru", RnnMode::kGru)
      .choice("lstm", RnnMode::kLstm)
      .choice("rnn_relu", RnnMode::kRelu)
      .choice("rnn_tanh", RnnMode::kTanh)
      .doc("The cell.");
  field("p", &RnnParams::p)
      .default_value(0.0)
      .range(0, 1)
      .doc("Dropout probability, in training, of the outputs of each layer but the last.");
  field("state_outputs", &RnnParams::state_outputs)
      .default_value(false)
      .doc("Whether the final states are outputs too.");
  field("projection_size", &RnnParams::projection_size)
      .none_by_default()
      .at_least(1)
      .doc("LSTM: size to which the state is projected before it is output and fed back.");
  field("lstm_state_clip_min", &RnnParams::lstm_state_clip_min)
      .none_by_default()
      .doc("Lower limit of LSTM cells; needs the upper one.");
  field("lstm_state_clip_max", &RnnParams::lstm_state_clip_max)
      .none_by_default()
      .doc("Upper limit of LSTM cells; needs the lower one.");
  field("lstm_state_clip_nan", &RnnParams::lstm_state_clip_nan)
      .default_value(false)
      .doc("Whether limits turn NaN into the lower limit.");
  field("use_sequence_length", &RnnParams::use_sequence_length)
      .default_value(false)
      .doc("Whether examples have lengths of their own, given as last input.");
}

void check_rnn(const RnnParams& p) {
  if (p.projection_size && !p.lstm()) {
    throw ParamError({.input = "projection_size",
                      .expected = "None",
                      .given = std::to_string(*p.projection_size),
                      .because = "only mode lstm projects its state"});
  }
  if (p.lstm_state_clip_min.has_value() != p.lstm_state_clip_max.has_value()) {
    throw ParamError({.input = "lstm_state_clip_min",
                      .expected = "both limits or none",
                      .given = "one of them",
                      .fix = "give lstm_state_clip_min and lstm_state_clip_max"});
  }
  if (p.lstm_state_clip_min && *p.lstm_state_clip_min > *p.lstm_state_clip_max) {
    throw ParamError({.input = "lstm_state_clip_min",
                      .expected = "at most " + std::to_string(*p.lstm_state_clip_max),
                      .given = std::to_string(*p.lstm_state_clip_min),
                      .because = "lstm_state_clip_max is that"});
  }
}

void RnnParams::describe(ParamSchema<RnnParams>& schema) {
  describe_fields(schema);
  schema.check(check_rnn);
}
void RnnBackwardParams::describe(ParamSchema<RnnBackwardParams>& schema) {
  describe_fields(schema);
  schema.field("dropped", &RnnBackwardParams::dropped).default_value(false).doc("Whether dropout was applied.");
  schema.field("state_grad", &RnnBackwardParams::state_grad)
      .default_value(false)
      .doc("Whether the final state has a gradient.");
  schema.field("cell_grad", &RnnBackwardParams::cell_grad)
      .default_value(false)
      .doc("Whether the final cell has a gradient.");
}

RnnGeometry geometry_of(const RnnParams& p, int64_t steps, int64_t batch, int64_t input) {
  RnnGeometry g;
  g.mode = p.mode;
  g.layers = p.num_layers;
  g.directions = p.bidirectional ? 2 : 1;
  g.steps = steps;
  g.batch = batch;
  g.input = input;
  g.hidden = p.state_size;
  g.projection = p.projection_size.value_or(0);
  if (p.lstm_state_clip_min) g.clip = {true, p.lstm_state_clip_nan, *p.lstm_state_clip_min, *p.lstm_state_clip_max};
  g.masked = p.use_sequence_length;
  g.dropout = p.p;
  return g;
}
RnnGeometry geometry_of(const RnnParams& p, const Shape& data) { return geometry_of(p, data[0], data[1], data[2]); }

// ---- inference
// ------------------------------------------------------------------------------------------------------- The number of
// inputs follows from the number of parameters.
int64_t input_size_of(const RnnParams& p, int64_t parameters) {
  const RnnGeometry none = geometry_of(p, 0, 0, 0);
  const int64_t per_input = none.directions * none.gate_size(), rest = parameters - none.parameter_count();
  return rest >= 0 && rest % per_input == 0 ? rest / per_input : kUnknownDim;
}

void infer_states(const RnnParams& p, InferContext& c, const RnnGeometry& g, int64_t batch) {
  const Shape state{g.cells(), batch, g.recurrent()}, cell{g.cells(), batch, g.hidden};
  c.set_in_shape(2, state);
  if (p.lstm()) c.set_in_shape(p.cell_input(), cell);
  if (p.state_outputs) c.set_out_shape(1, state);
  if (p.state_outputs && p.lstm()) c.set_out_shape(2, cell);
  if (p.use_sequence_length) c.set_in_shape(p.length_input(), Shape{batch});
}

void infer_rnn_dtypes(const RnnParams& p, InferContext& c) {
  if (p.lstm() && p.state_outputs)
    c.unify_dtypes({0, 1, 2, 3}, {0, 1, 2});
  else if (p.lstm())
    c.unify_dtypes({0, 1, 2, 3}, {0});
  else if (p.state_outputs)
    c.unify_dtypes({0, 1, 2}, {0, 1});
  else
    c.unify_dtypes({0, 1, 2}, {0});
  const DType dtype = c.in_dtype(0);
  if (dtype == DType::kUnknown) return;
  c.set_out_dtype(p.reserve_output(), is_half(dtype) ? DType::kFloat32 : dtype);
  if (p.use_sequence_length && c.in_dtype(p.length_input()) == DType::kUnknown) c.set_in_dtype(p.length_input(), dtype);
}

void infer_rnn(const RnnParams& p, InferContext& c) {
  infer_rnn_dtypes(p, c);
  if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() != 3) {
    throw ShapeError({.input = "data", .expected = "(steps, batch, inputs)", .given = c.in_shape(0).str()});
  }
  c.set_in_shape(0, Shape::unknown(3));
  c.set_in_shape(1, Shape::unknown(1));
  c.set_in_shape(2, Shape::unknown(3));
  RnnGeometry g = geometry_of(p, 0, 0, 0);
  c.set_out_shape(0, Shape{c.in_shape(0)[0], c.in_shape(0)[1], g.output()});
  c.set_in_shape(0, Shape{c.out_shape(0)[0], c.out_shape(0)[1], kUnknownDim});
  c.set_in_shape(0, Shape{kUnknownDim, c.in_shape(2)[1], kUnknownDim});
  if (c.in_shape(1)[0] >= 0 && c.in_shape(0)[2] < 0)
    c.set_in_shape(0, Shape{kUnknownDim, kUnknownDim, input_size_of(p, c.in_shape(1)[0])});
  infer_states(p, c, g, c.in_shape(0)[1]);
  c.set_out_shape(0, Shape{c.in_shape(0)[0], c.in_shape(0)[1], g.output()});
  if (c.in_shape(0)[2] >= 0) {
    g.input = c.in_shape(0)[2];
    c.set_in_shape(1, Shape{g.parameter_count()});
  }
  if (c.in_shape(0).known()) c.set_out_shape(p.reserve_output(), Shape{geometry_of(p, c.in_shape(0)).reserve_size()});
}

void infer_backward(const RnnBackwardParams& p, InferContext& c) {
  for (int i = 0; i < 3 + p.lstm(); ++i) {
    c.set_out_shape(i, c.in_shape(i));
    c.set_out_dtype(i, c.in_dtype(i));
  }
}

// ---- kernels
// ---------------------------------------------------------------------------------------------------------
std::vector<int64_t> lengths_of(const TensorRef& t, int64_t steps) {
  std::vector<int64_t> lengths(static_cast<size_t>(t.size()));
  dispatch_dtype(t.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const double given = static_cast<double>(t.as<T>()[i]);  // NaN becomes 0
      lengths[i] = given >= static_cast<double>(steps) ? steps : given > 0 ? static_cast<int64_t>(given) : 0;
    }
  });
  return lengths;
}

template <typename T>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const RnnParams& p, const RnnGeometry& g) : p_(p), g_(g) {}
  int64_t workspace_bytes() const override { return g_.forward_workspace() * static_cast<int64_t>(sizeof(T)); }
  void run(const KernelArgs& a) override {
    kernels::RnnForward<T> f{};
    std::vector<int64_t> lengths;
    if (g_.masked) lengths = lengths_of(a.in[static_cast<size_t>(p_.length_input())], g_.steps);
    f.data = a.in[0].as<T>();
    f.parameters = a.in[1].as<T>();
    f.state = a.in[2].as<T>();
    f.cell = p_.lstm() ? a.in[static_cast<size_t>(p_.cell_input())].as<T>() : nullptr;
    f.lengths = lengths.data();
    f.out = a.out[0].as<T>();
    f.state_out = p_.state_outputs ? a.out[1].as<T>() : nullptr;
    f.cell_out = p_.state_outputs && p_.lstm() ? a.out[2].as<T>() : nullptr;
    f.reserve = a.out[static_cast<size_t>(p_.reserve_output())].as<T>();
    f.workspace = static_cast<T*>(a.workspace);
    f.drop = a.train && p_.p > 0;
    f.rng = a.rng;
    kernels::rnn_forward(g_, f);
  }

 private:
  RnnParams p_;
  RnnGeometry g_;
};

template <typename T>
class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const RnnBackwardParams& p, const RnnGeometry& g) : p_(p), g_(g) {}
  int64_t workspace_bytes() const override { return g_.backward_workspace() * static_cast<int64_t>(sizeof(T)); }
  void run(const KernelArgs& a) override {
    kernels::RnnBackward<T> b{};
    std::vector<int64_t> lengths;
    if (g_.masked) lengths = lengths_of(a.in[static_cast<size_t>(p_.length_input())], g_.steps);
    b.data = a.in[0].as<T>();
    b.parameters = a.in[1].as<T>();
    b.state = a.in[2].as<T>();
    b.cell = p_.lstm() ? a.in[static_cast<size_t>(p_.cell_input())].as<T>() : nullptr;
    b.lengths = lengths.data();
    size_t next = static_cast<size_t>(p_.forward_inputs());
    b.out = a.in[next++].as<T>();
    b.reserve = a.in[next++].as<T>();
    b.dout = a.in[next++].as<T>();
    b.dstate_out = p_.state_grad ? a.in[next++].as<T>() : nullptr;
    b.dcell_out = p_.cell_grad ? a.in[next++].as<T>() : nullptr;
    b.ddata = a.out[0].as<T>();
    b.dparameters = a.out[1].as<T>();
    b.dstate = a.out[2].as<T>();
    b.dcell = p_.lstm() ? a.out[3].as<T>() : nullptr;
    b.workspace = static_cast<T*>(a.workspace);
    b.drop = p_.dropped;
    kernels::rnn_backward(g_, b);
  }

 private:
  RnnBackwardParams p_;
  RnnGeometry g_;
};

template <template <typename> class KernelOf, typename P>
Ref<Kernel> link_rnn(const P& p, const LinkContext& c) {
  if (is_half(c.in[0].dtype))
    return link_through_float(c, [&p](const LinkContext& wide) { return link_rnn<KernelOf>(p, wide); });
  const RnnGeometry g = geometry_of(p, c.in[0].shape);
  if (c.in[0].dtype == DType::kFloat64) return Ref<Kernel>(new KernelOf<double>(p, g));
  return Ref<Kernel>(new KernelOf<float>(p, g));
}

int64_t rnn_cost_ns(const RnnParams& p, const TensorSpec& data) {
  const RnnGeometry g = geometry_of(p, data.shape);
  int64_t cost = 300;
  for (int64_t layer = 0; layer < g.layers; ++layer)
    cost += g.directions *
            kernels::gemm_cost_ns(g.positions(), g.gate_size(), g.layer_input(layer) + g.recurrent(), data.dtype);
  return cost;
}

// ---- gradient
// --------------------------------------------------------------------------------------------------------
Values rnn_gradient(const RnnParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(p.num_inputs()));
  RnnBackwardParams q;
  static_cast<RnnParams&>(q) = p;
  q.dropped = g.train() && p.p > 0;
  const Value dstate = p.state_outputs ? g.output_grad(1) : Value{};
  const Value dcell = p.state_outputs && p.lstm() ? g.output_grad(2) : Value{};
  q.state_grad = static_cast<bool>(dstate);
  q.cell_grad = static_cast<bool>(dcell);
  if (!g.output_grad(0) && !dstate && !dcell) return grads;
  Values in;
  for (int i = 0; i < p.num_inputs(); ++i) in.push_back(g.input(i));
  in.push_back(g.output(0));
  in.push_back(g.output(p.reserve_output()));
  in.push_back(g.output_grad(0) ? g.output_grad(0) : zeros_like(g.output(0)));
  if (dstate) in.push_back(dstate);
  if (dcell) in.push_back(dcell);
  const Values found = call_all(kBackward, in, ParamSchema<RnnBackwardParams>::box(std::move(q)));
  for (size_t i = 0; i < found.size(); ++i) grads[i] = found[i];
  return grads;
}

Sample rnn_sample(const RnnParams& p, std::vector<std::pair<std::string, std::string>> attrs, Shape data) {
  const RnnGeometry g = geometry_of(p, data);
  Sample s{.inputs = {data, Shape{g.parameter_count()}, Shape{g.cells(), g.batch, g.recurrent()}},
           .attrs = std::move(attrs),
           .low = -1,
           .high = 1};
  if (p.lstm()) s.inputs.push_back(Shape{g.cells(), g.batch, g.hidden});
  s.attrs.emplace_back("state_size", std::to_string(p.state_size));
  s.attrs.emplace_back("num_layers", std::to_string(p.num_layers));
  if (p.bidirectional) s.attrs.emplace_back("bidirectional", "True");
  if (p.projection_size) s.attrs.emplace_back("projection_size", std::to_string(*p.projection_size));
  return s;
}

void register_backward(OpRegistry& ops) {
  RnnParams p;
  p.mode = RnnMode::kTanh;
  p.state_size = 2;
  Sample sample = rnn_sample(p, {{"mode", "rnn_tanh"}}, {3, 2, 2});
  sample.inputs.push_back({3, 2, 2});
  sample.inputs.push_back({geometry_of(p, 3, 2, 2).reserve_size()});
  sample.inputs.push_back({3, 2, 2});
  ops.declare<RnnBackwardParams>("_backward_RNN")
      .internal()
      .doc("Gradient of RNN. After the inputs of RNN come its output, its reserve and the gradients of its outputs.")
      .input("data", "as in RNN")
      .input("parameters", "as in RNN")
      .input("state", "as in RNN")
      .input("argument3", "cell, lengths or output")
      .input("argument4", "lengths, output or reserve")
      .input("argument5", "the next one")
      .optional_input("argument6", "the next one")
      .optional_input("argument7", "the next one")
      .optional_input("argument8", "the next one")
      .optional_input("argument9", "the next one")
      .num_inputs([](const RnnBackwardParams& q) { return q.num_inputs(); })
      .output("data_grad", "as data")
      .output("parameters_grad", "as parameters")
      .output("state_grad", "as state")
      .output("cell_grad", "as state_cell")
      .num_outputs([](const RnnBackwardParams& q) { return 3 + q.lstm(); })
      .infer(infer_backward)
      .link(link_rnn<BackwardKernel, RnnBackwardParams>)
      .gradient(kNotDifferentiable)
      .cost([](const RnnBackwardParams& q, auto in, auto) { return 2 * rnn_cost_ns(q, in[0]); })
      .sample(std::move(sample));
}

}  // namespace

void register_rnn(OpRegistry& ops) {
  const auto params = [](RnnMode mode, int32_t size, int32_t layers, bool bidirectional) {
    RnnParams p;
    p.mode = mode;
    p.state_size = size;
    p.num_layers = layers;
    p.bidirectional = bidirectional;
    return p;
  };
  RnnParams projected = params(RnnMode::kLstm, 3, 2, true);
  projected.projection_size = 2;
  Sample lengths =
      rnn_sample(params(RnnMode::kLstm, 2, 2, true),
                 {{"mode", "lstm"}, {"use_sequence_length", "True"}, {"state_outputs", "True"}}, {4, 3, 2});
  lengths.inputs.push_back({3});
  lengths.low = -1.5;  // lengths from 0 (negative ones count as 0) to 3
  lengths.high = 3.5;
  lengths.dtypes = {DType::kUnknown, DType::kUnknown, DType::kUnknown, DType::kUnknown, DType::kInt32};
  ops.declare<RnnParams>("RNN")
      .alias("_npx_rnn")
      .doc(
          "Runs layers of recurrent cells over a sequence. Packed parameters: for each layer and direction the weights "
          "of the input "
          "(gates * state_size, inputs), of the state (gates * state_size, state) and of the projection "
          "(projection_size, state_size); "
          "then, in the same order, the biases of input and state. Gates: LSTM i, f, g, o; GRU r, z, n. "
          "The gradient cannot be differentiated again.")
      .input("data", "(steps, batch, inputs)")
      .input("parameters", "all weights, then all biases, in one vector")
      .input("state", "initial states (layers * directions, batch, state_size or projection_size)")
      .optional_input("state_cell", "LSTM: initial cells (layers * directions, batch, state_size)")
      .optional_input("sequence_length",
                      "use_sequence_length: (batch,), steps of each example; what lies behind gives 0")
      .num_inputs([](const RnnParams& p) { return p.num_inputs(); })
      .output("output", "(steps, batch, directions * (state_size or projection_size))")
      .output("state_output", "state_outputs: states after the last step, shape of state")
      .output("statecell_output", "state_outputs of LSTM: cells after the last step, shape of state_cell")
      .output("reserve", "what the gradient needs of the steps")
      .num_outputs([](const RnnParams& p) { return p.reserve_output() + 1; })
      .num_visible_outputs([](const RnnParams& p) { return p.reserve_output(); })
      .infer(infer_rnn)
      .link(link_rnn<ForwardKernel, RnnParams>)
      .gradient(rnn_gradient)
      .random()
      .train_sensitive()
      .cost([](const RnnParams& p, auto in, auto) { return rnn_cost_ns(p, in[0]); })
      .sample(rnn_sample(params(RnnMode::kLstm, 3, 1, false), {{"mode", "lstm"}}, {3, 2, 4}))
      .sample(rnn_sample(params(RnnMode::kLstm, 2, 2, true), {{"mode", "lstm"}, {"state_outputs", "True"}}, {3, 2, 3}))
      .sample(rnn_sample(params(RnnMode::kGru, 3, 2, true), {{"mode", "gru"}, {"state_outputs", "True"}}, {3, 2, 2}))
      .sample(
          rnn_sample(params(RnnMode::kTanh, 3, 2, false), {{"mode", "rnn_tanh"}, {"state_outputs", "True"}}, {4, 2, 2}))
      .sample(rnn_sample(params(RnnMode::kRelu, 3, 1, true), {{"mode", "rnn_relu"}}, {3, 2, 2}))
      .sample(rnn_sample(projected, {{"mode", "lstm"}, {"state_outputs", "True"}}, {3, 2, 2}))
      .sample(rnn_sample(params(RnnMode::kLstm, 3, 1, false),
                         {{"mode", "lstm"}, {"lstm_state_clip_min", "-0.4"}, {"lstm_state_clip_max", "0.5"}},
                         {3, 2, 2}))
      .sample(std::move(lengths))
      .sample(rnn_sample(params(RnnMode::kGru, 5, 1, true), {{"mode", "gru"}, {"state_outputs", "True"}}, {5, 3, 2}))
      .sample(rnn_sample(params(RnnMode::kLstm, 5, 1, false), {{"mode", "lstm"}}, {4, 3, 2}))
      .sample(rnn_sample(params(RnnMode::kGru, 2, 1, false), {{"mode", "gru"}, {"state_outputs", "True"}}, {0, 2, 3}))
      .sample(
          rnn_sample(params(RnnMode::kLstm, 2, 1, false), {{"mode", "lstm"}, {"state_outputs", "True"}}, {2, 0, 3}));
  register_backward(ops);
}

}  // namespace hybridnet::ops
