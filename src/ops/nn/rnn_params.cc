#include "ops/nn/rnn_params.h"

#include "kernels/product/gemm.h"

namespace hybridnet::ops {
namespace {

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M RnnParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("state_size", &RnnParams::state_size).at_least(1).doc("Size of the state of each layer and direction.");
  field("num_layers", &RnnParams::num_layers).at_least(1).doc("Number of stacked layers.");
  field("bidirectional", &RnnParams::bidirectional)
      .default_value(false)
      .doc("Whether each layer also reads the sequence backwards.");
  field("mode", &RnnParams::mode)
      .choice("gru", RnnMode::kGru)
      .choice("lstm", RnnMode::kLstm)
      .choice("rnn_relu", RnnMode::kRelu)
      .choice("rnn_tanh", RnnMode::kTanh)
      .doc("The kind of cell.");
  field("p", &RnnParams::p)
      .default_value(0.0)
      .range(0, 1)
      .doc("Dropout probability, in training, of the outputs of each layer but the last.");
  field("state_outputs", &RnnParams::state_outputs)
      .default_value(false)
      .doc("Whether the final states are outputs, too.");
  field("projection_size", &RnnParams::projection_size)
      .none_by_default()
      .at_least(1)
      .doc("LSTM: size to which the state is projected before it is output and fed back.");
  field("lstm_state_clip_min", &RnnParams::lstm_state_clip_min)
      .none_by_default()
      .doc("Lower limit of LSTM cells; requires the upper limit.");
  field("lstm_state_clip_max", &RnnParams::lstm_state_clip_max)
      .none_by_default()
      .doc("Upper limit of LSTM cells; requires the lower limit.");
  field("lstm_state_clip_nan", &RnnParams::lstm_state_clip_nan)
      .default_value(false)
      .doc("Whether clipping replaces NaN by the lower limit.");
  field("use_sequence_length", &RnnParams::use_sequence_length)
      .default_value(false)
      .doc("Whether examples have their own lengths, the last input.");
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

}  // namespace

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
  schema.field("data_grad", &RnnBackwardParams::data_grad)
      .default_value(true)
      .doc("Whether the gradient of the data is computed.");
  schema.field("over_reserve", &RnnBackwardParams::over_reserve)
      .default_value(false)
      .doc("Whether gradients of gates may overwrite the reserve.");
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

kernels::Indices lengths_of(const RnnParams& p, const KernelArgs& a, int64_t steps, bool report) {
  if (!p.use_sequence_length) return kernels::Indices(0);
  kernels::Indices lengths(a.in[static_cast<size_t>(p.length_input())]);
  if (report) lengths.report({"RNN", "sequence_length"}, kernels::Bounds::length(0, steps));
  lengths.clip(0, steps);
  return lengths;
}

double rnn_cost_ns(const RnnParams& p, const TensorSpec& data) {
  const RnnGeometry g = geometry_of(p, data.shape);
  double cost = 300;
  for (int64_t layer = 0; layer < g.layers; ++layer)
    cost += static_cast<double>(g.directions) *
            kernels::gemm_cost_ns(g.positions(), g.gate_size(), g.layer_input(layer) + g.recurrent(), data.dtype);
  return cost;
}

double rnn_flops(const RnnParams& p, const TensorSpec& data) {
  const RnnGeometry g = geometry_of(p, data.shape);
  double flops = 0;
  for (int64_t layer = 0; layer < g.layers; ++layer)
    flops += static_cast<double>(g.directions) *
             kernels::gemm_flops(g.positions(), g.gate_size(), g.layer_input(layer) + g.recurrent());
  return flops;
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

}  // namespace hybridnet::ops
