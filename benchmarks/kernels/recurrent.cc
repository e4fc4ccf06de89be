// One layer of an LSTM or a GRU over a sequence.
#include "kernels/comparison.h"
#include "kernels/rnn/rnn.h"

namespace hybridnet::benchmarks {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
using kernels::RnnGeometry;
using kernels::RnnMode;
using onednn::Desc;
using tag = memory::format_tag;

// The tensors that the primitives of the forward run and of the gradient share.
struct Net {
  RnnGeometry g;
  bool lstm;
  Floats data, parameters, state, cell, out, state_out, cell_out, reserve, workspace;
  Floats dout, dstate_out, dcell_out, ddata, dparameters, dstate, dcell, backward_workspace;
  // The library's tensors.
  Floats w_input, w_state, bias, y, ddata_library;
  Net(RnnMode mode, int64_t steps, int64_t batch, int64_t size)
      : g(geometry(mode, steps, batch, size)),
        lstm(mode == RnnMode::kLstm),
        data(steps * batch * size),
        parameters(g.parameter_count()),
        state(batch * size),
        cell(batch * size),
        out(data.size()),
        state_out(batch * size),
        cell_out(batch * size),
        reserve(g.reserve_size()),
        workspace(g.forward_workspace()),
        dout(data.size()),
        dstate_out(batch * size),
        dcell_out(batch * size),
        ddata(data.size()),
        dparameters(parameters.size()),
        dstate(batch * size),
        dcell(batch * size),
        backward_workspace(g.backward_workspace()),
        w_input(g.gate_size() * size),
        w_state(g.gate_size() * size),
        bias(4 * size),
        y(data.size()),
        ddata_library(data.size()) {
    for (int64_t i = 0; i < parameters.size(); ++i) parameters.get()[i] *= 0.1F;
    share_parameters();
  }
  static RnnGeometry geometry(RnnMode mode, int64_t steps, int64_t batch, int64_t size) {
    RnnGeometry g;
    g.mode = mode;
    g.steps = steps;
    g.batch = batch;
    g.input = g.hidden = size;
    return g;
  }
  void run_forward() const {
    kernels::rnn_forward(g, {.data = data.get(),
                             .parameters = parameters.get(),
                             .state = state.get(),
                             .cell = lstm ? cell.get() : nullptr,
                             .packed = nullptr,
                             .lengths = nullptr,
                             .out = out.get(),
                             .state_out = state_out.get(),
                             .cell_out = lstm ? cell_out.get() : nullptr,
                             .reserve = reserve.get(),
                             .workspace = workspace.get(),
                             .unreserved = nullptr,
                             .drop = false,
                             .rng = {}});
  }
  void run_backward() const {
    kernels::rnn_backward(g, {.data = data.get(),
                              .parameters = parameters.get(),
                              .state = state.get(),
                              .cell = lstm ? cell.get() : nullptr,
                              .lengths = nullptr,
                              .out = out.get(),
                              .reserve = reserve.get(),
                              .dout = dout.get(),
                              .dstate_out = dstate_out.get(),
                              .dcell_out = lstm ? dcell_out.get() : nullptr,
                              .ddata = ddata.get(),
                              .dparameters = dparameters.get(),
                              .dstate = dstate.get(),
                              .dcell = lstm ? dcell.get() : nullptr,
                              .dgates = nullptr,
                              .workspace = backward_workspace.get(),
                              .drop = false});
  }

 private:
  // oneDNN's GRU has the gate order z, r, n; its bias of n on the side of the state comes last.
  void share_parameters() {
    const auto p = g.parameters_of(0, 0);
    const int64_t hidden = g.hidden, block = hidden * hidden;
    for (int64_t gate = 0; gate < g.gates(); ++gate) {
      const int64_t to = lstm || gate == 2 ? gate : 1 - gate;
      std::copy_n(parameters.get() + p.i2h + gate * block, block, w_input.get() + to * block);
      std::copy_n(parameters.get() + p.h2h + gate * block, block, w_state.get() + to * block);
      const float *input_bias = parameters.get() + p.i2h_bias + gate * hidden,
                  *state_bias = parameters.get() + p.h2h_bias + gate * hidden;
      const bool apart = !lstm && gate == 2;
      for (int64_t i = 0; i < hidden; ++i) {
        bias.get()[to * hidden + i] = input_bias[i] + (apart ? 0 : state_bias[i]);
        if (apart) bias.get()[3 * hidden + i] = state_bias[i];
      }
    }
  }
};

// The library's tensor descriptors by argument, for both kinds of cells.
struct Descs {
  Desc sequence, state, w, w_any, bias;
  explicit Descs(const RnnGeometry& g)
      : sequence(layout({g.steps, g.batch, g.hidden}, tag::tnc)),
        state(layout({1, 1, g.batch, g.hidden}, tag::ldnc)),
        w(layout({1, 1, g.hidden, g.gates(), g.hidden}, tag::ldgoi)),
        w_any(layout({1, 1, g.hidden, g.gates(), g.hidden}, tag::any)),
        bias(layout({1, 1, 4, g.hidden}, tag::ldgo)) {}
};

constexpr auto kDirection = dnnl::rnn_direction::unidirectional_left2right;

dnnl::lstm_forward::primitive_desc describe_lstm(const Descs& d, prop_kind kind) {
  return dnnl::lstm_forward::primitive_desc(onednn::cpu_engine(), kind, kDirection, d.sequence, d.state, d.state,
                                            d.w_any, d.w_any, d.bias, d.sequence, d.state, d.state,
                                            onednn::user_scratchpad());
}
dnnl::lbr_gru_forward::primitive_desc describe_gru(const Descs& d, prop_kind kind) {
  return dnnl::lbr_gru_forward::primitive_desc(onednn::cpu_engine(), kind, kDirection, d.sequence, d.state, d.w_any,
                                               d.w_any, d.bias, d.sequence, d.state, onednn::user_scratchpad());
}

// The weights in the layouts that a primitive requires.
template <typename PrimitiveDesc>
std::vector<Library::Tensor> weights(Library& library, const Net& net, const Descs& d, const PrimitiveDesc& pd,
                                     bool frozen) {
  const Desc input = pd.weights_layer_desc(), state = pd.weights_iter_desc();
  return {{DNNL_ARG_WEIGHTS_LAYER, input, library.in_layout(d.w, net.w_input.share(), input, frozen)},
          {DNNL_ARG_WEIGHTS_ITER, state, library.in_layout(d.w, net.w_state.share(), state, frozen)}};
}

// The tensors of the forward run and of the gradient, except weights.
template <typename PrimitiveDesc>
std::vector<Library::Tensor> forward_tensors(const Net& net, const Descs& d, const PrimitiveDesc& pd,
                                             const Library::Memory& kept) {
  std::vector<Library::Tensor> tensors{{DNNL_ARG_SRC_LAYER, d.sequence, net.data},
                                       {DNNL_ARG_SRC_ITER, d.state, net.state},
                                       {DNNL_ARG_BIAS, d.bias, net.bias},
                                       {DNNL_ARG_DST_LAYER, d.sequence, net.y},
                                       {DNNL_ARG_DST_ITER, d.state, Library::memory(d.state)}};
  if (net.lstm) {
    tensors.push_back({DNNL_ARG_SRC_ITER_C, d.state, net.cell});
    tensors.push_back({DNNL_ARG_DST_ITER_C, d.state, Library::memory(d.state)});
  }
  if (kept) tensors.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), kept});
  return tensors;
}

std::vector<Library::Tensor> joined(std::vector<Library::Tensor> first, const std::vector<Library::Tensor>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Appends the gradient to the tensors of the forward run. The gradients of the weights are returned in plain order,
// like ours.
template <typename PrimitiveDesc>
void add_gradient(Library& library, const Net& net, const Descs& d, const PrimitiveDesc& back,
                  std::vector<Library::Tensor> tensors) {
  const Library::Memory dw_input = Library::memory(back.diff_weights_layer_desc()),
                        dw_state = Library::memory(back.diff_weights_iter_desc()), dbias = Library::memory(d.bias);
  const std::vector<Library::Tensor> gradients{{DNNL_ARG_DIFF_DST_LAYER, d.sequence, net.dout},
                                               {DNNL_ARG_DIFF_DST_ITER, d.state, net.dstate_out},
                                               {DNNL_ARG_DIFF_SRC_LAYER, d.sequence, net.ddata_library},
                                               {DNNL_ARG_DIFF_SRC_ITER, d.state, Library::memory(d.state)},
                                               {DNNL_ARG_DIFF_WEIGHTS_LAYER, back.diff_weights_layer_desc(), dw_input},
                                               {DNNL_ARG_DIFF_WEIGHTS_ITER, back.diff_weights_iter_desc(), dw_state},
                                               {DNNL_ARG_DIFF_BIAS, d.bias, dbias}};
  tensors = joined(std::move(tensors), gradients);
  if (net.lstm) {
    tensors.push_back({DNNL_ARG_DIFF_DST_ITER_C, d.state, net.dcell_out});
    tensors.push_back({DNNL_ARG_DIFF_SRC_ITER_C, d.state, Library::memory(d.state)});
  }
  library.add(back, joined(weights(library, net, d, back, false), tensors));
  library.in_layout(back.diff_weights_layer_desc(), dw_input, d.w, false);
  library.in_layout(back.diff_weights_iter_desc(), dw_state, d.w, false);
}

dnnl::lstm_backward::primitive_desc describe_gradient(const Descs& d,
                                                      const dnnl::lstm_forward::primitive_desc& forward) {
  return dnnl::lstm_backward::primitive_desc(onednn::cpu_engine(), prop_kind::backward, kDirection, d.sequence, d.state,
                                             d.state, d.w_any, d.w_any, d.bias, d.sequence, d.state, d.state,
                                             d.sequence, d.state, d.state, d.w_any, d.w_any, d.bias, d.sequence,
                                             d.state, d.state, forward, onednn::user_scratchpad());
}
dnnl::lbr_gru_backward::primitive_desc describe_gradient(const Descs& d,
                                                         const dnnl::lbr_gru_forward::primitive_desc& forward) {
  return dnnl::lbr_gru_backward::primitive_desc(
      onednn::cpu_engine(), prop_kind::backward, kDirection, d.sequence, d.state, d.w_any, d.w_any, d.bias, d.sequence,
      d.state, d.sequence, d.state, d.w_any, d.w_any, d.bias, d.sequence, d.state, forward, onednn::user_scratchpad());
}

template <typename Describe>
void add(Comparisons& all, RnnMode mode, const Describe& describe, int64_t steps, int64_t batch, int64_t size) {
  const auto net = std::make_shared<Net>(mode, steps, batch, size);
  const Descs d(net->g);
  const std::string kernel = net->lstm ? "LSTM" : "GRU", work = std::to_string(steps) + " steps, batch " +
                                                                std::to_string(batch) + ", " + std::to_string(size) +
                                                                " units";
  const auto off = [=] { return difference(net->out, net->y); };
  auto prediction = std::make_shared<Library>();
  const auto pd = describe(d, prop_kind::forward_inference);
  prediction->add(pd, joined(weights(*prediction, *net, d, pd, true), forward_tensors(*net, d, pd, nullptr)));
  all.push_back({kernel + ", the library's weights packed before", work, [=] { net->run_forward(); },
                 [=] { prediction->run(); }, off});

  auto training = std::make_shared<Library>();
  const auto forward = describe(d, prop_kind::forward_training);
  const auto tensors = forward_tensors(*net, d, forward, Library::memory(forward.workspace_desc()));
  training->add(forward, joined(weights(*training, *net, d, forward, false), tensors));
  add_gradient(*training, *net, d, describe_gradient(d, forward), tensors);
  all.push_back({kernel + ", forward and gradient", work,
                 [=] {
                   net->run_forward();
                   net->run_backward();
                 },
                 [=] { training->run(); },
                 [=] { return std::max(off(), difference(net->ddata, net->ddata_library)); }});
}

}  // namespace

void add_recurrent(Comparisons& all) {
  const int64_t works[][3] = {{20, 1, 64}, {35, 32, 256}, {20, 64, 650}};
  for (const auto& [steps, batch, size] : works) {
    add(all, RnnMode::kLstm, describe_lstm, steps, batch, size);
    add(all, RnnMode::kGru, describe_gru, steps, batch, size);
  }
}

}  // namespace hybridnet::benchmarks
