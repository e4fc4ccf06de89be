// Parameters, sizes and samples that RNN and its gradients share.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/index/indices.h"
#include "kernels/rnn/rnn.h"
#include "ops/float_kernel.h"

namespace hybridnet::ops {

using kernels::RnnGeometry;
using kernels::RnnMode;

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

// Also defines which optional inputs and outputs are present.
struct RnnBackwardParams : RnnParams {
  bool dropped = false, state_grad = false, cell_grad = false;
  bool data_grad = true;      // false: the gradient of the data is empty
  bool over_reserve = false;  // another output may overwrite the reserve, which is not read afterwards
  int forward_inputs() const { return RnnParams::num_inputs(); }
  int num_inputs() const { return forward_inputs() + 3 + state_grad + cell_grad; }
  int reserve_input() const { return forward_inputs() + 1; }
  int num_gradients() const { return 3 + lstm(); }  // number of gradients, the first outputs
  static void describe(ParamSchema<RnnBackwardParams>& schema);
};

RnnGeometry geometry_of(const RnnParams& p, int64_t steps, int64_t batch, int64_t input);
inline RnnGeometry geometry_of(const RnnParams& p, const Shape& data) {
  return geometry_of(p, data[0], data[1], data[2]);
}

// The input sequence_length as numbers from 0 to steps, or none. report: whether lengths beyond steps are reported,
// for the forward operator.
kernels::Indices lengths_of(const RnnParams& p, const KernelArgs& a, int64_t steps, bool report = false);

// Returns a KernelOf<float> or KernelOf<double>, by the dtype of the data.
template <template <typename> class KernelOf, typename P>
Ref<Kernel> link_rnn(const P& p, const LinkContext& c) {
  RnnGeometry g = geometry_of(p, c.in[0].shape);
  g.plain = c.device.type == DeviceType::kGPU;
  return make_float_kernel<KernelOf>(c.in[0].dtype, p, g, c);
}

double rnn_cost_ns(const RnnParams& p, const TensorSpec& data);
double rnn_flops(const RnnParams& p, const TensorSpec& data);  // floating-point operations of its products

// Inputs and attributes of a use of RNN on data of this shape; `attrs` contains the mode and all attributes that differ
// from a default.
Sample rnn_sample(const RnnParams& p, std::vector<std::pair<std::string, std::string>> attrs, Shape data);

}  // namespace hybridnet::ops
