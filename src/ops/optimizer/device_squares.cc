#include "ops/optimizer/device_squares.h"

#include <algorithm>
#include <string>
#include <vector>

#include "hybridnet/storage.h"
#include "ops/optimizer/device_update.h"

namespace hybridnet::ops::on_device {
namespace {

using device::element_name;

std::string text_of(const std::string& entry, const std::string& arguments, const std::string& function) {
  return device::include_line("squares.cuh") + device::kernel_line(entry, arguments, function);
}

std::string compute_name(DType dtype) { return dtype == DType::kFloat64 ? "double" : "float"; }

int64_t blocks_of(int64_t size) { return (size + device::kSquaresBlock - 1) / device::kSquaresBlock; }

// Launches the sums of blocks of tensors of one dtype; a.count of them are in the table.
void launch_squares(const device::SquaresArguments& a, DType dtype) {
  launch_table(device::include_line("squares.cuh") + device::block_kernel_line("squares", "SquaresArguments",
                                                                               "squares<" + element_name(dtype) + ">",
                                                                               "double", "256"),
               "squares", a);
}

// The sums of blocks of tensors [begin, end) of any dtypes; first_block and count of `join` describe them.
void block_sums(std::span<const TensorRef> tensors, double* partial, device::JoinSquaresArguments& join) {
  int64_t from = 0;
  for (const TensorRef& tensor : tensors) {  // tensors of one dtype in a row are one launch
    const int64_t blocks = blocks_of(tensor.size());
    join.first_block[join.count + 1] = join.first_block[join.count] + static_cast<int32_t>(blocks);
    ++join.count;
    const bool ends = join.count == static_cast<int64_t>(tensors.size()) ||
                      tensors[static_cast<size_t>(join.count)].dtype != tensor.dtype;
    if (!ends) continue;
    device::SquaresArguments a{};
    a.partial = partial + join.first_block[from];
    for (; from < join.count; ++from) {
      const TensorRef& one = tensors[static_cast<size_t>(from)];
      add_tensor(a, device::SquaresTensor{one.data, one.size()}, device::kSquaresBlock);
    }
    launch_squares(a, tensor.dtype);
  }
}

}  // namespace

void sums_of_squares(std::span<const TensorRef> tensors, DType out_dtype, void* out) {
  const std::string type = element_name(out_dtype);
  for (size_t begin = 0; begin < tensors.size(); begin += device::kMaxSquares) {
    const auto part = tensors.subspan(begin, std::min<size_t>(tensors.size() - begin, device::kMaxSquares));
    int64_t blocks = 0;
    for (const TensorRef& tensor : part) blocks += blocks_of(tensor.size());
    const OwnedBlock partial(std::max<int64_t>(blocks, 1) * 8, device::current()->device());
    device::JoinSquaresArguments join{};
    block_sums(part, static_cast<double*>(partial.data()), join);
    join.partial = static_cast<const double*>(partial.data());
    join.out = static_cast<char*>(out) + static_cast<int64_t>(begin) * dtype_size(out_dtype);
    device::Program::of(text_of("join_squares", "JoinSquaresArguments", "join_squares<" + type + ">"))
        .launch("join_squares", device::geometry_for(join.count), join);
  }
}

void all_finite(std::span<const TensorRef> tensors, float* out) {
  for (size_t i = 0; i < tensors.size();) {
    const DType dtype = tensors[i].dtype;
    device::FiniteArguments a{};
    a.out = out;
    for (; i < tensors.size() && tensors[i].dtype == dtype && a.count < device::kMaxSquares; ++i)
      add_tensor(a, device::SquaresTensor{tensors[i].data, tensors[i].size()}, device::kSquaresBlock);
    if (!is_floating(dtype)) continue;
    launch_table(text_of("finite", "FiniteArguments", "finite<" + element_name(dtype) + ">"), "finite", a);
  }
}

void lars(const KernelArgs& a, double eta, double eps, double rescale_grad) {
  const device::LarsArguments arguments{.lrs = a.in[0].as<float>(),
                                        .weights = a.in[1].as<float>(),
                                        .grads = a.in[2].as<float>(),
                                        .wds = a.in[3].as<float>(),
                                        .out = a.out[0].as<float>(),
                                        .n = a.in[0].size(),
                                        .eta = eta,
                                        .eps = eps,
                                        .rescale_grad = rescale_grad};
  if (arguments.n > 0)
    device::Program::of(text_of("lars", "LarsArguments", "lars"))
        .launch("lars", device::geometry_for(arguments.n), arguments);
}

void layer_rates(const KernelArgs& a, bool is_lars, double eta, double eps) {
  const int64_t weight_blocks = blocks_of(a.in[0].size()), grad_blocks = blocks_of(a.in[1].size());
  const OwnedBlock partial(std::max<int64_t>(weight_blocks + grad_blocks, 1) * 8, device::current()->device());
  device::JoinSquaresArguments join{};
  block_sums(std::span(a.in).first(2), static_cast<double*>(partial.data()), join);
  const device::LayerRatesArguments arguments{.partial = static_cast<const double*>(partial.data()),
                                              .rates = a.in[2].as<double>(),
                                              .out = a.out[0].as<double>(),
                                              .weight_blocks = weight_blocks,
                                              .grad_blocks = grad_blocks,
                                              .columns = a.in[2].size(),
                                              .is_lars = is_lars,
                                              .eta = eta,
                                              .eps = eps};
  device::Program::of(text_of("layer_rates", "LayerRatesArguments", "layer_rates"))
      .launch("layer_rates", device::geometry_for(1), arguments);
}

void apply_lamb(device::LambArguments a, DType from, DType compute, DType out) {
  if (a.n == 0) return;
  const Shape shape({a.n});
  TensorRef tensors[2];
  tensors[0].data = const_cast<void*>(a.weight);
  tensors[1].data = const_cast<void*>(a.step);
  tensors[0].dtype = from;
  tensors[1].dtype = compute;
  for (TensorRef& tensor : tensors) tensor.shape = &shape;
  const OwnedBlock totals(2 * 8, device::current()->device());
  sums_of_squares(tensors, DType::kFloat64, totals.data());
  a.totals = static_cast<const double*>(totals.data());
  const std::string types = element_name(from) + ", " + element_name(out) + ", " + compute_name(compute);
  device::Program::of(text_of("lamb", "LambArguments", "lamb<" + types + ">"))
      .launch("lamb", device::geometry_for(a.n), a);
}

void rows_adagrad(const device::RowsAdagradArguments& a, DType dtype) {
  const std::string types = element_name(dtype) + ", " + compute_name(dtype);
  device::Program::of(text_of("rows_adagrad", "RowsAdagradArguments", "rows_adagrad<" + types + ">"))
      .launch("rows_adagrad", device::geometry_for(a.count), a);
}

}  // namespace hybridnet::ops::on_device
