// The gradient of RNN's gradient.
#include "kernels/rnn/rnn_second_order.h"

#include <utility>
#include <vector>

#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/nn/rnn_params.h"

namespace hybridnet::ops {
namespace {

// Inputs: the inputs of RNN, its reserve, the gradients of its outputs, and the direction (shapes of data, parameters,
// state, cell).
int differentiable_inputs(const RnnBackwardParams& p) { return 3 + p.lstm(); }
int output_grads(const RnnBackwardParams& p) { return 1 + p.state_grad + p.cell_grad; }

void infer_second_order(const RnnBackwardParams& p, InferContext& c) {
  const int grads = p.forward_inputs() + 1, results = differentiable_inputs(p);
  const auto like = [&c](int out, int in) {
    c.set_out_shape(out, c.in_shape(in));
    c.set_out_dtype(out, c.in_dtype(in));
  };
  for (int i = 0; i < results; ++i) like(i, i);
  for (int i = 0; i < output_grads(p); ++i) like(results + i, grads + i);
}

template <typename T>
class SecondOrderKernel final : public Kernel {
 public:
  SecondOrderKernel(const RnnBackwardParams& p, const RnnGeometry& g, const LinkContext&) : p_(p), g_(g) {}
  void run(const KernelArgs& a) override {
    const kernels::Indices lengths = lengths_of(p_, a, g_.steps);
    size_t in = 0, out = 0;
    const auto next_in = [&](bool there = true) -> const T* { return there ? a.in[in++].as<T>() : nullptr; };
    const auto next_out = [&](bool there = true) -> T* { return there ? a.out[out++].as<T>() : nullptr; };
    kernels::RnnSecondOrder<T> s{};
    s.data = next_in();
    s.parameters = next_in();
    s.state = next_in();
    s.cell = next_in(p_.lstm());
    in = static_cast<size_t>(p_.forward_inputs());
    s.reserve = next_in();
    s.out_grad = next_in();
    s.state_grad = next_in(p_.state_grad);
    s.cell_grad = next_in(p_.cell_grad);
    s.ddata = next_in();
    s.dparameters = next_in();
    s.dstate = next_in();
    s.dcell = next_in(p_.lstm());
    s.lengths = lengths.data();
    s.drop = p_.dropped;
    s.data_result = next_out();
    s.parameters_result = next_out();
    s.state_result = next_out();
    s.cell_result = next_out(p_.lstm());
    s.out_slope = next_out();
    s.state_slope = next_out(p_.state_grad);
    s.cell_slope = next_out(p_.cell_grad);
    kernels::rnn_second_order(g_, s);
  }

 private:
  RnnBackwardParams p_;
  RnnGeometry g_;
};

}  // namespace

void register_rnn_second_order(OpRegistry& ops) {
  RnnParams p;
  p.mode = RnnMode::kTanh;
  p.state_size = 2;
  Sample sample = rnn_sample(p, {{"mode", "rnn_tanh"}}, {3, 2, 2});
  const std::vector<Shape> inputs = sample.inputs;
  sample.inputs.push_back({geometry_of(p, 3, 2, 2).reserve_size()});
  sample.inputs.push_back({3, 2, 2});
  for (const Shape& shape : inputs) sample.inputs.push_back(shape);
  auto op = ops.declare<RnnBackwardParams>("_rnn_second_order");
  op.internal()
      .doc(
          "Gradient of _backward_RNN: the directional derivatives of its outputs and of RNN's outputs. The inputs of "
          "RNN are followed by its reserve, the gradients of its outputs and the direction.")
      .input("data", "same as in RNN")
      .input("parameters", "same as in RNN")
      .input("state", "same as in RNN");
  for (int i = 3; i < 8; ++i) op.input("argument" + std::to_string(i), "the next of these inputs");
  for (int i = 8; i < 13; ++i) op.optional_input("argument" + std::to_string(i), "the next of these inputs");
  op.num_inputs(
        [](const RnnBackwardParams& q) { return q.forward_inputs() + 1 + output_grads(q) + differentiable_inputs(q); })
      .output("data_result", "shape of data")
      .output("parameters_result", "shape of parameters")
      .output("state_result", "shape of state")
      .output("result3", "LSTM: shape of state_cell, otherwise shape of the output of RNN")
      .output("result4", "the next of these outputs")
      .output("result5", "the next of these outputs")
      .output("result6", "the next of these outputs")
      .num_outputs([](const RnnBackwardParams& q) { return differentiable_inputs(q) + output_grads(q); })
      .infer(infer_second_order)
      .link(link_rnn<SecondOrderKernel, RnnBackwardParams>)
      .halves_through_float()
      .gradient(kNotDifferentiable)
      .cost([](const RnnBackwardParams& q, auto in, auto) { return 10 * rnn_cost_ns(q, in[0]); })
      .sample(std::move(sample));
}

}  // namespace hybridnet::ops
