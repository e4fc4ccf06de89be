// _contrib_quantized_rnn: LSTM layers over a sequence of uint8. Weights are quantized to int8, with one scale for each
// gate of each unit, common to all layers; states are quantized with the scale of the data before each product. Gates,
// cells and outputs are floats.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "kernels/conv/byte_steps.h"
#include "kernels/conv/int8_convolution.h"
#include "kernels/memory/workspace_parts.h"
#include "ops/nn/rnn_params.h"
#include "ops/quantized/ranges.h"
#include "storage/derived.h"

namespace hybridnet::ops {
namespace {

using kernels::ConvGeometry;
using kernels::Int8Convolution;
using kernels::WorkspaceParts;

struct QuantizedRnnParams : RnnParams {
  static void describe(ParamSchema<QuantizedRnnParams>& schema);
};

void check_quantized_rnn(const QuantizedRnnParams& p) {
  const auto refuse = [](const char* name, const char* expected, const char* given) {
    throw ParamError({.input = name,
                      .expected = expected,
                      .given = given,
                      .because = "layers of bytes are LSTM without projection, limits and lengths",
                      .fix = "use RNN"});
  };
  if (!p.lstm()) refuse("mode", "lstm", "another cell");
  if (p.projection_size) refuse("projection_size", "None", "a size");
  if (p.lstm_state_clip_min || p.lstm_state_clip_max) refuse("lstm_state_clip_min", "None", "a limit");
  if (p.use_sequence_length) refuse("use_sequence_length", "False", "True");
}

void QuantizedRnnParams::describe(ParamSchema<QuantizedRnnParams>& schema) {
  using P = QuantizedRnnParams;
  schema.field("state_size", static_cast<int32_t P::*>(&RnnParams::state_size)).at_least(1).doc("Size of the state.");
  schema.field("num_layers", static_cast<int32_t P::*>(&RnnParams::num_layers))
      .at_least(1)
      .doc("Number of stacked layers.");
  schema.field("bidirectional", static_cast<bool P::*>(&RnnParams::bidirectional))
      .default_value(false)
      .doc("Whether each layer also reads the sequence backwards.");
  schema.field("mode", static_cast<RnnMode P::*>(&RnnParams::mode))
      .choice("gru", RnnMode::kGru)
      .choice("lstm", RnnMode::kLstm)
      .choice("rnn_relu", RnnMode::kRelu)
      .choice("rnn_tanh", RnnMode::kTanh)
      .doc("lstm; the other cells are not supported.");
  schema.field("p", static_cast<float P::*>(&RnnParams::p)).default_value(0.0).hidden();
  schema.field("state_outputs", static_cast<bool P::*>(&RnnParams::state_outputs))
      .default_value(false)
      .doc("Whether the final states are outputs, too.");
  schema.field("projection_size", static_cast<std::optional<int32_t> P::*>(&RnnParams::projection_size))
      .none_by_default()
      .doc("None: not supported.");
  schema.field("lstm_state_clip_min", static_cast<std::optional<double> P::*>(&RnnParams::lstm_state_clip_min))
      .none_by_default()
      .doc("None: not supported.");
  schema.field("lstm_state_clip_max", static_cast<std::optional<double> P::*>(&RnnParams::lstm_state_clip_max))
      .none_by_default()
      .doc("None: not supported.");
  schema.field("lstm_state_clip_nan", static_cast<bool P::*>(&RnnParams::lstm_state_clip_nan))
      .default_value(false)
      .hidden();
  schema.field("use_sequence_length", static_cast<bool P::*>(&RnnParams::use_sequence_length))
      .default_value(false)
      .doc("False: not supported.");
  schema.check(check_quantized_rnn);
}

// Products of rows of unsigned bytes with a matrix.
std::unique_ptr<Int8Convolution> make_product(int64_t rows, int64_t inputs, int64_t outputs) {
  ConvGeometry g;
  g.spatial = 1;
  g.n = 1;
  g.c = inputs;
  g.o = outputs;
  g.in[2] = g.out[2] = rows;
  g.channels_last = true;
  return kernels::make_int8_convolution(g, {.data = DType::kUInt8});
}

// The weights of all cells.
struct Prepared {
  struct Cell {
    std::unique_ptr<OwnedBlock> input, state;
    std::vector<float> weight_sums, bias;  // for each row of the gates: the data's shift is multiplied by weight_sums
  };
  std::vector<float> steps;  // per unit, for each gate
  std::vector<Cell> cells;
};

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

class RnnKernel final : public Kernel {
 public:
  RnnKernel(const RnnParams& p, const RnnGeometry& g)
      : g_(g),
        with_states_(p.state_outputs),
        first_(make_product(g.positions(), g.input, g.gate_size())),
        upper_(make_product(g.positions(), g.output(), g.gate_size())),
        state_(make_product(g.batch, g.hidden, g.gate_size())),
        prepared_("bytes of lstm " + std::to_string(g.layers) + " " + std::to_string(g.directions) + " " +
                  first_->packing() + upper_->packing() + state_->packing()) {}

  std::string description() const override { return state_->description(); }
  int64_t workspace_bytes() const override { return room_in(nullptr).bytes; }

  void run(const KernelArgs& a) override {
    const DerivedSource source{a.in[1].data, a.in[1].derived};
    const DerivedUser<Prepared>::Use w = prepared_.get(a.in[1].last_copy, {&source, 1}, 2 * g_.parameter_count(),
                                                       [&] { return prepare(a.in[1].as<float>()); });
    const float scale = *a.in[4].as<float>(), shift = *a.in[5].as<float>();
    const Room room = room_in(a.workspace);
    float* out = a.out[0].as<float>();
    for (int64_t layer = 0; layer < g_.layers; ++layer) {
      if (layer > 0) kernels::floats_to_bytes(out, g_.positions() * g_.output(), scale, shift, room.x);
      for (int64_t direction = 0; direction < g_.directions; ++direction)
        run_cell(a, *w, layer, direction, layer > 0 ? room.x : a.in[0].as<uint8_t>(), room);
    }
  }

 private:
  // The parts of the workspace.
  struct Room {
    char* product;
    int32_t *of_input, *of_state;  // products of all positions and of one step
    float *h, *c;
    uint8_t *x, *h_bytes;  // the output of the previous layer and the state, as bytes
    int64_t bytes;         // total size of all parts
  };
  Room room_in(void* workspace) const {
    const int64_t width = g_.batch * g_.hidden;
    WorkspaceParts parts(workspace);
    Room room;
    room.product =
        parts.take<char>(std::max({first_->workspace_bytes(), upper_->workspace_bytes(), state_->workspace_bytes()}));
    room.of_input = parts.take<int32_t>(g_.positions() * g_.gate_size());
    room.of_state = parts.take<int32_t>(g_.batch * g_.gate_size());
    room.h = parts.take<float>(width);
    room.c = parts.take<float>(width);
    room.x = parts.take<uint8_t>(g_.layers > 1 ? g_.positions() * g_.output() : 0);
    room.h_bytes = parts.take<uint8_t>(width);
    room.bytes = parts.bytes();
    return room;
  }

  void run_cell(const KernelArgs& a, const Prepared& w, int64_t layer, int64_t direction, const uint8_t* x,
                const Room& room) const {
    const int64_t index = layer * g_.directions + direction, gates = g_.gate_size(), width = g_.batch * g_.hidden;
    const Prepared::Cell& cell = w.cells[static_cast<size_t>(index)];
    const float scale = *a.in[4].as<float>(), shift = *a.in[5].as<float>();
    multiply(layer == 0 ? *first_ : *upper_, x, cell.input->data(), room.of_input, room.product);
    float *h = room.h, *c = room.c, *out = a.out[0].as<float>();
    std::copy_n(a.in[2].as<float>() + index * width, width, h);
    std::copy_n(a.in[3].as<float>() + index * width, width, c);
    for (int64_t step = 0; step < g_.steps; ++step) {
      const int64_t t = direction == 0 ? step : g_.steps - 1 - step;
      kernels::floats_to_bytes(h, width, scale, shift, room.h_bytes);
      multiply(*state_, room.h_bytes, cell.state->data(), room.of_state, room.product);
      for (int64_t n = 0; n < g_.batch; ++n) {
        const int32_t* from_input = room.of_input + (t * g_.batch + n) * gates;
        const int32_t* from_state = room.of_state + n * gates;
        for (int64_t j = 0; j < g_.hidden; ++j) {
          const auto gate = [&](int64_t number) {
            const auto k = static_cast<size_t>(number * g_.hidden + j);
            const float sum = static_cast<float>(from_input[k] + from_state[k]) - shift * cell.weight_sums[k];
            return sum / (scale * w.steps[k]) + cell.bias[k];
          };
          const int64_t i = n * g_.hidden + j;
          c[i] = sigmoid(gate(1)) * c[i] + sigmoid(gate(0)) * std::tanh(gate(2));
          h[i] = sigmoid(gate(3)) * std::tanh(c[i]);
        }
        std::copy_n(h + n * g_.hidden, g_.hidden, out + (t * g_.batch + n) * g_.output() + direction * g_.hidden);
      }
    }
    if (!with_states_) return;
    std::copy_n(h, width, a.out[1].as<float>() + index * width);
    std::copy_n(c, width, a.out[2].as<float>() + index * width);
  }

  static void multiply(const Int8Convolution& product, const uint8_t* x, const void* weights, int32_t* y,
                       void* workspace) {
    kernels::Int8ConvTensors t;
    t.x = x;
    t.weights = weights;
    t.y = y;
    t.workspace = workspace;
    product.run(t);
  }

  // Calls f(rows of the matrix, columns, matrix) for the weights of the input and of the state.
  template <typename F>
  void for_weights(const float* parameters, int64_t layer, int64_t direction, F&& f) const {
    const RnnGeometry::CellParameters at = g_.parameters_of(layer, direction);
    f(parameters + at.i2h, g_.layer_input(layer), true);
    f(parameters + at.h2h, g_.hidden, false);
  }

  std::shared_ptr<Prepared> prepare(const float* parameters) const {
    auto w = std::make_shared<Prepared>();
    const int64_t gates = g_.gate_size();
    std::vector<float> reach(static_cast<size_t>(gates));
    for (int64_t cell = 0; cell < g_.cells(); ++cell) {
      for_weights(parameters, cell / g_.directions, cell % g_.directions,
                  [&](const float* matrix, int64_t columns, bool) {
                    for (int64_t i = 0; i < gates * columns; ++i) {
                      float& r = reach[static_cast<size_t>(i / columns)];
                      r = std::max(r, std::abs(matrix[i]));
                    }
                  });
    }
    for (const float r : reach) w->steps.push_back(r != 0 ? 127.0f / r : 1.0f);
    for (int64_t cell = 0; cell < g_.cells(); ++cell)
      w->cells.push_back(prepare_cell(parameters, *w, cell / g_.directions, cell % g_.directions));
    return w;
  }

  Prepared::Cell prepare_cell(const float* parameters, const Prepared& w, int64_t layer, int64_t direction) const {
    Prepared::Cell cell;
    const int64_t gates = g_.gate_size();
    cell.weight_sums.assign(static_cast<size_t>(gates), 0.0f);
    for_weights(parameters, layer, direction, [&](const float* matrix, int64_t columns, bool of_input) {
      std::vector<int8_t> plain(static_cast<size_t>(gates * columns));
      for (size_t i = 0; i < plain.size(); ++i) {
        const size_t gate = i / static_cast<size_t>(columns);
        plain[i] = nearest_step<int8_t>(matrix[i] * w.steps[gate]);
        cell.weight_sums[gate] += static_cast<float>(plain[i]);
      }
      const Int8Convolution& product = !of_input ? *state_ : layer == 0 ? *first_ : *upper_;
      auto& packed = of_input ? cell.input : cell.state;
      packed = std::make_unique<OwnedBlock>(product.packed_bytes());
      product.pack(plain.data(), packed->data());
    });
    const RnnGeometry::CellParameters at = g_.parameters_of(layer, direction);
    for (int64_t k = 0; k < gates; ++k) cell.bias.push_back(parameters[at.i2h_bias + k] + parameters[at.h2h_bias + k]);
    return cell;
  }

  RnnGeometry g_;
  bool with_states_;
  std::unique_ptr<Int8Convolution> first_, upper_, state_;
  DerivedUser<Prepared> prepared_;
};

void infer(const QuantizedRnnParams& p, InferContext& c) {
  c.set_in_dtype(0, DType::kUInt8);
  for (int i = 1; i < 4; ++i) c.set_in_dtype(i, DType::kFloat32);
  infer_range_inputs(c, 4, 6);
  const int outputs = p.state_outputs ? 3 : 1;
  for (int i = 0; i < outputs; ++i) c.set_out_dtype(i, DType::kFloat32);
  if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() != 3)
    throw ShapeError({.input = "data", .expected = "(steps, batch, inputs)", .given = c.in_shape(0).str()});
  c.set_in_shape(0, Shape::unknown(3));
  const Shape& data = c.in_shape(0);
  const int64_t directions = p.bidirectional ? 2 : 1, cells = p.num_layers * directions;
  const Shape state{cells, data[1], p.state_size};
  for (int i = 2; i < 4; ++i) c.set_in_shape(i, state);
  for (int i = 1; i < outputs; ++i) c.set_out_shape(i, state);
  c.set_out_shape(0, Shape{data[0], data[1], directions * p.state_size});
  if (data[0] >= 0 && data[1] >= 0 && data[2] >= 0) c.set_in_shape(1, Shape{geometry_of(p, data).parameter_count()});
}

Sample sample(int layers, bool both, std::vector<std::pair<std::string, std::string>> attrs) {
  RnnParams p;
  p.state_size = 3;
  p.num_layers = layers;
  p.bidirectional = both;
  const RnnGeometry g = geometry_of(p, 4, 2, 5);
  attrs.insert(attrs.end(), {{"mode", "lstm"}, {"state_size", "3"}, {"num_layers", std::to_string(layers)}});
  const Shape state{g.cells(), 2, 3};
  Sample s;
  s.inputs = {{4, 2, 5}, {g.parameter_count()}, state, state, {1}, {1}};
  s.dtypes = {DType::kUInt8, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32};
  s.attrs = std::move(attrs);
  s.low = 0.5;
  s.high = 4.0;
  return s;
}

}  // namespace

void register_quantized_rnn(OpRegistry& ops) {
  ops.declare<QuantizedRnnParams>("_contrib_quantized_rnn")
      .doc("LSTM layers over a sequence of uint8; parameters and outputs are those of RNN.")
      .input("data", "uint8 (steps, batch, inputs), the output of quantize_asym")
      .input("parameters", "float32: all weights, then all biases, in one vector")
      .input("state", "initial states (layers * directions, batch, state_size)")
      .input("state_cell", "initial cells, same shape")
      .input("data_scale", "(1,): steps per unit of data")
      .input("data_shift", "(1,): the step of zero")
      .output("output", "float32 (steps, batch, directions * state_size)")
      .output("state_output", "if state_outputs: states after the last step")
      .output("statecell_output", "if state_outputs: cells after the last step")
      .mxnet_name("statecell_ouput")  // MXNet's spelling
      .num_outputs([](const QuantizedRnnParams& p) { return p.state_outputs ? 3 : 1; })
      .infer(infer)
      .link([](const QuantizedRnnParams& p,
               const LinkContext& c) { return Ref<Kernel>(new RnnKernel(p, geometry_of(p, c.in[0].shape))); },
            DType::kUInt8)
      .gradient(kNotDifferentiable)
      .cost([](const QuantizedRnnParams& p, auto in, auto) { return rnn_cost_ns(p, in[0]); })
      .sample(sample(1, false, {}))
      .sample(sample(2, true, {{"bidirectional", "True"}, {"state_outputs", "True"}}));
}

}  // namespace hybridnet::ops
