#include "kernels/conv/library_convolution.h"

#include "device/library_convolution.h"
#include "kernels/conv/device_convolution.h"
#include "kernels/device/channel_bias_arguments.h"
#include "kernels/device/program_table.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::ConvolutionCall;
using Form = ConvolutionCall::Form;

ConvolutionCall call_of(const ConvGeometry& g, Form form, DType dtype, const void* x, const void* w, const void* y) {
  return {.form = form,
          .dtype = dtype,
          .spatial = g.spatial,
          .n = g.n,
          .c = g.c,
          .o = g.o,
          .groups = g.groups,
          .in = g.in,
          .out = g.out,
          .kernel = g.kernel,
          .stride = g.stride,
          .dilate = g.dilate,
          .pad = g.pad,
          .channels_last = g.channels_last,
          .weights_last = g.weights_last,
          .x = x,
          .w = w,
          .y = y};
}

device::Program& bias_program(DType dtype) {
  static ProgramTable<4> programs;
  const int number = dtype == DType::kFloat32 ? 0 : dtype == DType::kFloat64 ? 1 : dtype == DType::kFloat16 ? 2 : 3;
  return programs.get(number, [&] {
    return include_line("channel_bias.cuh") +
           kernel_line("add_bias", "ChannelBiasArguments", "add_channel_bias<" + element_name(dtype) + ">");
  });
}

// image += bias of its channel + addend; both may be null. The images of libraries have less than 2^31 elements.
void add(const ConvGeometry& g, DType dtype, const void* bias, const void* addend, int64_t channels, int64_t points,
         void* image) {
  if (!bias && !addend) return;
  const device::ChannelBiasArguments a{.image = image,
                                       .bias = bias,
                                       .addend = addend,
                                       .n = static_cast<uint32_t>(g.n * channels * points),
                                       .channels = static_cast<uint32_t>(channels),
                                       .inner = static_cast<uint32_t>(g.channels_last ? 1 : points)};
  bias_program(dtype).launch("add_bias", device::geometry_for(a.n), a);
}

}  // namespace

bool convolve_by_library(const ConvGeometry& g, DType dtype, const void* x, const void* w, const void* bias,
                         const void* addend, void* y) {
  if (!device::library_convolution(call_of(g, Form::kForward, dtype, x, w, y),
                                   own_steps(g, ConvProduct::forward(g), false)))
    return false;
  add(g, dtype, bias, addend, g.o, g.out_size(), y);
  return true;
}

bool convolve_data_gradient_by_library(const ConvGeometry& g, DType dtype, const void* dy, const void* w,
                                       const void* bias, void* dx) {
  if (!device::library_convolution(call_of(g, Form::kDataGradient, dtype, dx, w, dy),
                                   own_steps(g, ConvProduct::data_gradient(g), false)))
    return false;
  add(g, dtype, bias, nullptr, g.c, g.in_size(), dx);
  return true;
}

bool convolve_weight_gradient_by_library(const ConvGeometry& g, DType dtype, const void* x, const void* dy, void* dw,
                                         void* db) {
  if (!device::library_convolution(call_of(g, Form::kFilterGradient, dtype, x, dw, dy),
                                   own_steps(g, ConvProduct::weight_gradient(g), true)))
    return false;
  if (db) sum_bias_gradient(g, dtype, dy, db);
  return true;
}

}  // namespace hybridnet::kernels::on_device
