#include "kernels/rnn/device_rnn.h"

#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/program_table.h"
#include "kernels/device/rnn_arguments.h"
#include "kernels/random/bernoulli.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::RnnCellArguments;
using device::RnnRowArguments;

template <typename T>
device::Program& rnn_program() {
  static ProgramTable<1> programs;
  return programs.get(0, [] {
    const std::string type = "<" + element_name(dtype_of<T>::value) + ">";
    std::string text = include_line("rnn.cuh");
    for (const std::string name : {"lstm_step", "lstm_backward_step", "lstm_hidden", "gru_step", "gru_backward_step",
                                   "plain_step", "plain_backward_step"})
      text += kernel_line(name, "RnnCellArguments", name + type);
    for (const std::string name : {"add_rnn_biases", "set_finished", "write_states", "add_strided"})
      text += kernel_line(name, "RnnRowArguments", name + type);
    return text + kernel_line("drop_outputs", "RnnDropArguments", "drop_outputs" + type);
  });
}

template <typename T, typename Arguments>
void launch(const char* function, int64_t n, const Arguments& a) {
  if (n > 0) rnn_program<T>().launch(function, device::geometry_for(n), a);
}

RnnCellArguments cell_arguments(int64_t rows, int64_t hidden, const CellClip& clip = {}) {
  RnnCellArguments a{};
  a.rows = rows;
  a.hidden = hidden;
  a.clips = clip.on;
  a.clips_nan = clip.nan;
  a.low = clip.low;
  a.high = clip.high;
  return a;
}

}  // namespace

template <typename T>
void lstm_step(const LstmStep<T>& s) {
  RnnCellArguments a = cell_arguments(s.rows, s.hidden, s.clip);
  a.gates = s.gates, a.c_prev = s.c_prev, a.c = s.c, a.h = s.h;
  launch<T>("lstm_step", s.rows * s.hidden, a);
}

template <typename T>
void lstm_backward_step(const LstmBackwardStep<T>& s) {
  RnnCellArguments a = cell_arguments(s.rows, s.hidden, s.clip);
  a.gates_in = s.gates, a.c_prev = s.c_prev, a.c_in = s.c, a.dh = s.dh, a.dc = s.dc, a.dgates = s.dgates;
  launch<T>("lstm_backward_step", s.rows * s.hidden, a);
}

template <typename T>
void lstm_hidden(int64_t rows, int64_t hidden, const T* gates, const T* c, T* h) {
  RnnCellArguments a = cell_arguments(rows, hidden);
  a.gates_in = gates, a.c_in = c, a.h = h;
  launch<T>("lstm_hidden", rows * hidden, a);
}

template <typename T>
void gru_step(const GruStep<T>& s) {
  RnnCellArguments a = cell_arguments(s.rows, s.hidden);
  a.gates = s.gates, a.recurrent = s.recurrent, a.bias = s.bias, a.recurrent_n = s.recurrent_n;
  a.h_prev = s.h_prev, a.h = s.h;
  launch<T>("gru_step", s.rows * s.hidden, a);
}

template <typename T>
void gru_backward_step(const GruBackwardStep<T>& s) {
  RnnCellArguments a = cell_arguments(s.rows, s.hidden);
  a.gates_in = s.gates, a.recurrent = s.recurrent_n, a.h_prev = s.h_prev, a.h = s.dh;
  a.dgates = s.dgates, a.drecurrent = s.drecurrent;
  launch<T>("gru_backward_step", s.rows * s.hidden, a);
}

template <typename T>
void plain_step(bool relu, int64_t n, const T* gates, T* h) {
  RnnCellArguments a = cell_arguments(n, 1);
  a.gates_in = gates, a.h = h, a.relu = relu;
  launch<T>("plain_step", n, a);
}

template <typename T>
void plain_backward_step(bool relu, int64_t n, const T* h, const T* dh, T* dgates) {
  RnnCellArguments a = cell_arguments(n, 1);
  a.c_in = h, a.dh = dh, a.dgates = dgates, a.relu = relu;
  launch<T>("plain_backward_step", n, a);
}

template <typename T>
void add_rnn_biases(const T* bias, const T* state_bias, int64_t n, int64_t shared, T* sums) {
  launch<T>("add_rnn_biases", n,
            RnnRowArguments{.a = bias, .strided = state_bias, .out = sums, .width = n, .stride = shared});
}

template <typename T>
void set_finished(const StepRows& s, int64_t width, const T* from, T* out) {
  launch<T>("set_finished", s.rows * width,
            RnnRowArguments{.a = from, .out = out, .lengths = s.lengths, .t = s.t, .rows = s.rows, .width = width});
}

template <typename T>
void write_states(const StepRows& s, int64_t width, const T* states, int64_t stride, T* out) {
  launch<T>(
      "write_states", s.rows * width,
      RnnRowArguments{
          .a = states, .out = out, .lengths = s.lengths, .t = s.t, .rows = s.rows, .width = width, .stride = stride});
}

template <typename T>
void add_strided(int64_t rows, int64_t width, const T* a, const T* strided, int64_t stride, T* out) {
  launch<T>("add_strided", rows * width,
            RnnRowArguments{.a = a, .strided = strided, .out = out, .rows = rows, .width = width, .stride = stride});
}

template <typename T>
void drop_outputs(const RngKey& key, double keep, int64_t begin, int64_t n, double scale, const T* in, T* multipliers,
                  T* out) {
  if (n == 0) return;
  const OwnedBlock mask(n, device::current()->device());
  auto* const kept = static_cast<uint8_t*>(mask.data());
  fill_bernoulli(key, keep, begin, n, kept);
  launch<T>(
      "drop_outputs", n,
      device::RnnDropArguments{.in = in, .keep = kept, .multipliers = multipliers, .out = out, .n = n, .scale = scale});
}

#define HYBRIDNET_DEVICE_RNN(T)                                                 \
  template void lstm_step(const LstmStep<T>&);                                  \
  template void lstm_backward_step(const LstmBackwardStep<T>&);                 \
  template void lstm_hidden(int64_t, int64_t, const T*, const T*, T*);          \
  template void gru_step(const GruStep<T>&);                                    \
  template void gru_backward_step(const GruBackwardStep<T>&);                   \
  template void plain_step(bool, int64_t, const T*, T*);                        \
  template void plain_backward_step(bool, int64_t, const T*, const T*, T*);     \
  template void add_rnn_biases(const T*, const T*, int64_t, int64_t, T*);       \
  template void set_finished(const StepRows&, int64_t, const T*, T*);           \
  template void write_states(const StepRows&, int64_t, const T*, int64_t, T*);  \
  template void add_strided(int64_t, int64_t, const T*, const T*, int64_t, T*); \
  template void drop_outputs(const RngKey&, double, int64_t, int64_t, double, const T*, T*, T*);
HYBRIDNET_DEVICE_RNN(float)
HYBRIDNET_DEVICE_RNN(double)
#undef HYBRIDNET_DEVICE_RNN

}  // namespace hybridnet::kernels::on_device
