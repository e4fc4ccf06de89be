// RNN: layers of recurrent cells over a whole sequence.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "kernels/product/packed.h"
#include "ops/emit.h"
#include "ops/nn/rnn_params.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_backward_RNN"};

// The size of the inputs, derived from the number of parameters.
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

template <typename T>
class ForwardKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  ForwardKernel(const RnnParams& p, const RnnGeometry& g, const LinkContext& c) : p_(p), g_(g), train_(c.train) {
    if (c.frozen_weights && g.reads_packed_alone())
      kept_ = std::make_unique<kernels::PackedWeights>(layout(g), g.packed_size() * kBytes,
                                                       kernels::unpack_rnn_parameters<T>(g));
  }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }
  int64_t workspace_bytes() const override {
    return (own_workspace() + (train_ ? 0 : g_.unreserved_workspace())) * kBytes;
  }
  void run(const KernelArgs& a) override {
    kernels::RnnForward<T> f{};
    const kernels::Indices lengths = lengths_of(p_, a, g_.steps, true);
    f.data = a.in[0].as<T>();
    f.parameters = a.in[1].as<T>();
    kernels::PackedWeights::Use kept;
    if (kept_) {
      kept = kept_->get(
          a.in[1], [&](void* target) { kernels::pack_rnn_parameters(g_, a.in[1].as<T>(), static_cast<T*>(target)); });
      f.packed = static_cast<const T*>(kept->data());
    }
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
    std::optional<OwnedBlock> room;
    if (!f.reserve && train_)  // a training run whose gradient is not needed
      f.unreserved = static_cast<T*>(room.emplace(g_.unreserved_workspace() * kBytes, device_now()).data());
    else
      f.unreserved = f.workspace + own_workspace();
    kernels::rnn_forward(g_, f);
  }

 private:
  static constexpr int64_t kBytes = sizeof(T);  // bytes of an element
  static std::string layout(const RnnGeometry& g) {
    std::string text = g.mode == kernels::RnnMode::kGru ? "gru" : "lstm";
    for (const int64_t size : {g.layers, g.directions, g.input, g.hidden, kBytes}) text += " " + std::to_string(size);
    return text;
  }
  static Device device_now() {
    const device::Stream* const stream = device::current();
    return stream ? stream->device() : Device{};
  }
  int64_t own_workspace() const { return g_.forward_workspace(kept_ != nullptr); }

  RnnParams p_;
  RnnGeometry g_;
  bool train_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: packed in each run, or not at all
};

Values rnn_gradient(const RnnParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(p.num_inputs()));
  RnnBackwardParams q;
  static_cast<RnnParams&>(q) = p;
  q.dropped = g.train() && p.p > 0;
  const Value dstate = p.state_outputs ? g.output_grad(1) : Value{};
  const Value dcell = p.state_outputs && p.lstm() ? g.output_grad(2) : Value{};
  q.data_grad = g.wants(0);
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
  for (size_t i = q.data_grad ? 0 : 1; i < found.size(); ++i) grads[i] = found[i];
  return grads;
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
  lengths.low = -1.5;  // lengths from 0 (negative lengths count as 0) to 3
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
          "Differentiable twice.")
      .input("data", "(steps, batch, inputs)")
      .input("parameters", "all weights, then all biases, in one vector")
      .input("state", "initial states (layers * directions, batch, state_size or projection_size)")
      .optional_input("state_cell", "for LSTM: initial cells (layers * directions, batch, state_size)")
      .optional_input("sequence_length",
                      "if use_sequence_length: (batch,), number of steps of each example; later steps give 0")
      .num_inputs([](const RnnParams& p) { return p.num_inputs(); })
      .output("output", "(steps, batch, directions * (state_size or projection_size))")
      .output("state_output", "if state_outputs: states after the last step, shape of state")
      .output("statecell_output", "if state_outputs, for LSTM: cells after the last step, shape of state_cell")
      .output("reserve", "values of the steps that the gradient needs")
      .num_outputs([](const RnnParams& p) { return p.reserve_output() + 1; })
      .num_visible_outputs([](const RnnParams& p) { return p.reserve_output(); })
      .infer(infer_rnn)
      .skips_unwanted_outputs()
      .any_device()
      .link(link_rnn<ForwardKernel, RnnParams>)
      .halves_through_float()
      .gradient(rnn_gradient)
      .random()
      .train_sensitive()
      .prediction_params([](RnnParams p) {
        p.p = 0;
        return p;
      })
      .cost([](const RnnParams& p, auto in, auto) { return rnn_cost_ns(p, in[0]); })
      .flops([](const RnnParams& p, auto in, auto) { return rnn_flops(p, in[0]); })
      .amp(AmpType::kHalf)
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
}

}  // namespace hybridnet::ops
