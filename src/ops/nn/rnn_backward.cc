// The gradient of RNN.
#include <utility>

#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/nn/rnn_params.h"

namespace hybridnet::ops {
namespace {

const OpRef kSecondOrder{"_rnn_second_order"};

void infer_backward(const RnnBackwardParams& p, InferContext& c) {
  for (int i = 0; i < p.num_gradients(); ++i) {
    c.set_out_shape(i, i == 0 && !p.data_grad ? Shape{0} : c.in_shape(i));
    c.set_out_dtype(i, c.in_dtype(i));
  }
  if (!p.over_reserve) return;
  c.set_out_shape(p.num_gradients(), c.in_shape(p.reserve_input()));
  c.set_out_dtype(p.num_gradients(), c.in_dtype(p.reserve_input()));
}

template <typename T>
class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const RnnBackwardParams& p, const RnnGeometry& g, const LinkContext&) : p_(p), g_(g) {}
  int64_t workspace_bytes() const override {
    return g_.backward_workspace(p_.over_reserve) * static_cast<int64_t>(sizeof(T));
  }
  void run(const KernelArgs& a) override {
    kernels::RnnBackward<T> b{};
    const kernels::Indices lengths = lengths_of(p_, a, g_.steps);
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
    b.ddata = p_.data_grad ? a.out[0].as<T>() : nullptr;
    b.dparameters = a.out[1].as<T>();
    b.dstate = a.out[2].as<T>();
    b.dcell = p_.lstm() ? a.out[3].as<T>() : nullptr;
    b.dgates = p_.over_reserve ? a.out[static_cast<size_t>(p_.num_gradients())].as<T>() : nullptr;
    b.workspace = static_cast<T*>(a.workspace);
    b.drop = p_.dropped;
    kernels::rnn_backward(g_, b);
  }

 private:
  RnnBackwardParams p_;
  RnnGeometry g_;
};

// The output and the reserve are functions of the other inputs, so their parts of the gradient are included in those of
// the other inputs.
Values rnn_backward_gradient(const RnnBackwardParams& p, const GradientContext& g) {
  const int inputs = p.forward_inputs(), differentiable = p.num_gradients(), heads = p.num_inputs() - inputs - 2;
  Values grads(static_cast<size_t>(g.num_inputs())), in;
  bool any = false;
  for (int i = 0; i < differentiable; ++i) any = any || g.output_grad(i);
  if (!any) return grads;
  for (int i = 0; i < inputs; ++i) in.push_back(g.input(i));
  for (int i = inputs + 1; i < p.num_inputs(); ++i) in.push_back(g.input(i));
  for (int i = 0; i < differentiable; ++i) in.push_back(g.output_grad(i) ? g.output_grad(i) : zeros_like(g.input(i)));
  const Values found = call_all(kSecondOrder, in, ParamSchema<RnnBackwardParams>::box(p));
  for (int i = 0; i < differentiable; ++i) grads[static_cast<size_t>(i)] = found[static_cast<size_t>(i)];
  for (int i = 0; i < heads; ++i)
    grads[static_cast<size_t>(inputs + 2 + i)] = found[static_cast<size_t>(differentiable + i)];
  return grads;
}

}  // namespace

void register_rnn_backward(OpRegistry& ops) {
  RnnParams p;
  p.mode = RnnMode::kTanh;
  p.state_size = 2;
  Sample sample = rnn_sample(p, {{"mode", "rnn_tanh"}}, {3, 2, 2});
  sample.check_gradient = false;
  sample.note = "the output and the reserve are taken as those of the other inputs";
  sample.inputs.push_back({3, 2, 2});
  sample.inputs.push_back({geometry_of(p, 3, 2, 2).reserve_size()});
  sample.inputs.push_back({3, 2, 2});
  ops.declare<RnnBackwardParams>("_backward_RNN")
      .internal()
      .doc(
          "Gradient of RNN. The inputs of RNN are followed by its output, its reserve and the gradients of its "
          "outputs.")
      .input("data", "same as in RNN")
      .input("parameters", "same as in RNN")
      .input("state", "same as in RNN")
      .input("argument3", "cell, lengths or output")
      .input("argument4", "lengths, output or reserve")
      .input("argument5", "the next of these inputs")
      .optional_input("argument6", "the next of these inputs")
      .optional_input("argument7", "the next of these inputs")
      .optional_input("argument8", "the next of these inputs")
      .optional_input("argument9", "the next of these inputs")
      .num_inputs([](const RnnBackwardParams& q) { return q.num_inputs(); })
      .output("data_grad", "shape of data")
      .output("parameters_grad", "shape of parameters")
      .output("state_grad", "shape of state")
      .output("cell_grad", "shape of state_cell")
      .output("gate_grads", "if over_reserve: shape of the reserve")
      .num_outputs([](const RnnBackwardParams& q) { return q.num_gradients() + q.over_reserve; })
      .num_visible_outputs([](const RnnBackwardParams& q) { return q.num_gradients(); })
      .variadic_inplace([](const RnnBackwardParams& q, int output) {
        return q.over_reserve && output == q.num_gradients() ? q.reserve_input() : -1;
      })
      .infer(infer_backward)
      .any_device()
      .link(link_rnn<BackwardKernel, RnnBackwardParams>)
      .halves_through_float()
      .gradient(rnn_backward_gradient, Saves::all_inputs())
      .cost([](const RnnBackwardParams& q, auto in, auto) { return 2 * rnn_cost_ns(q, in[0]); })
      .sample(std::move(sample));
}

}  // namespace hybridnet::ops
