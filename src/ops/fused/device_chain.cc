#include "ops/fused/device_chain.h"

#include <algorithm>

#include "device/stream.h"
#include "hybridnet/storage.h"

namespace hybridnet::ops {
namespace {

// Writes an input that is not full to `out`, repeated to n elements.
void expand(const kernels::FusedInput& input, const void* data, int64_t n, int64_t item_size, void* out) {
  kernels::BroadcastLayout layout;
  layout.operands = 1;
  layout.ndim = std::max(static_cast<int>(input.dims.size()), 1);
  layout.dims[0] = n;  // for a single element
  layout.strides[0][0] = 0;
  std::copy(input.dims.begin(), input.dims.end(), layout.dims);
  std::copy(input.strides.begin(), input.strides.end(), layout.strides[0]);
  kernels::broadcast_copy_on_device(layout, data, item_size, out);
}

}  // namespace

bool DeviceChain::runs_everywhere(const PointwiseProgram& program, const LinkContext& context) {
  return std::ranges::all_of(program.steps, [&](const PointwiseProgram::Step& step) {
    LinkContext own = context;
    const std::vector<TensorSpec> in(step.in.size(), context.out[0]);
    own.params = step.params->data();
    own.in = in;
    own.out = context.out.first(1);
    own.in_format = {};
    own.out_format = {};
    return step.op->any_device && step.op->any_device(own);
  });
}

void DeviceChain::run_step(size_t step, const std::vector<void*>& slots, int64_t n) const {
  const PointwiseProgram::Step& s = program_.steps[step];
  const void* in[PointwiseProgram::kMaxOperands];
  for (size_t i = 0; i < s.in.size(); ++i) in[i] = slots[static_cast<size_t>(s.in[i])];
  s.op->pointwise(s.params->data(), dtype_, in, slots[static_cast<size_t>(program_.num_inputs) + step], n);
}

void DeviceChain::merge() {
  const size_t num_slots = static_cast<size_t>(program_.num_inputs) + program_.steps.size();
  std::vector<void*> slots;
  for (size_t slot = 0; slot < num_slots; ++slot)
    slots.push_back(kernels::FusedRecording::value_pointer(static_cast<int>(slot)));
  // Values that the recording numbers itself follow the slots, because a step may be several functions.
  kernels::FusedRecording recording(static_cast<int>(num_slots));
  for (size_t step = 0; step < program_.steps.size(); ++step) run_step(step, slots, 1);
  if (recording.failed()) return;
  std::vector<int> outputs;
  for (const int slot : program_.outputs) outputs.push_back(recording.value_of(slots[static_cast<size_t>(slot)]));
  auto chain = std::make_unique<kernels::FusedChain>(recording, dtype_, inputs_, std::move(outputs));
  if (chain->fits()) chain_ = std::move(chain);
}

void DeviceChain::run(const KernelArgs& args, int64_t n) {
  if (n == 0) return;
  std::call_once(merged_, [&] { merge(); });
  if (!chain_) return run_steps(args, n);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (int i = 0; i < program_.num_inputs; ++i) in.push_back(args.in[static_cast<size_t>(i)].data);
  for (const TensorRef& output : args.out) out.push_back(output.data);
  chain_->run(in.data(), out.data(), n);
}

// Each slot has memory of its own, because an output may have the memory of an input that a later step reads.
void DeviceChain::run_steps(const KernelArgs& args, int64_t n) const {
  const int64_t item_size = dtype_size(dtype_);
  const auto num_inputs = static_cast<size_t>(program_.num_inputs);
  const Device device = device::current()->device();
  std::vector<std::unique_ptr<OwnedBlock>> blocks;
  const auto memory = [&] { return blocks.emplace_back(std::make_unique<OwnedBlock>(n * item_size, device))->data(); };
  std::vector<void*> slots;
  for (size_t i = 0; i < num_inputs; ++i) {
    slots.push_back(inputs_[i].full ? args.in[i].data : memory());
    if (!inputs_[i].full) expand(inputs_[i], args.in[i].data, n, item_size, slots[i]);
  }
  for (size_t step = 0; step < program_.steps.size(); ++step) {
    slots.push_back(memory());
    run_step(step, slots, n);
  }
  for (size_t o = 0; o < args.out.size(); ++o)
    device::current()->copy(args.out[o].data, slots[static_cast<size_t>(program_.outputs[o])], n * item_size);
}

}  // namespace hybridnet::ops
