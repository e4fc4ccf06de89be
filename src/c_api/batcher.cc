// Batchers: they gather requests of many threads into calls of a model.
#include "c_api/batch_queue.h"
#include "c_api/model.h"
#include "c_api/status.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::BatchQueue;
using c_api::guarded;
using c_api::ModelHandle;
using c_api::Pinned;
using c_api::require;

namespace {

struct BatcherHandle final : c_api::Handled {
  static constexpr c_api::HandleKind kKind = c_api::HandleKind::kBatcher;
  BatcherHandle(const ModelHandle& model, std::vector<BatchQueue::Input> inputs, BatchQueue::Options options)
      : BatcherHandle(model, model.values(), std::move(inputs), options) {}
  BatcherHandle(const ModelHandle& model, ModelHandle::Values values, std::vector<BatchQueue::Input> inputs,
                BatchQueue::Options options)
      : queue(model.op(), std::move(values.arrays), values.device, std::move(inputs), model.output_names, options),
        input_names(model.input_names),
        output_names(model.output_names) {}
  BatchQueue queue;
  const std::vector<std::string> input_names, output_names;
};

// Returns the full spec of an input for one row: `given`, or else the file's spec. The first size is set to 1.
TensorSpec spec_of(const ModelHandle& model, size_t index, const HnTensorSpec* given) {
  const std::string& name = model.input_names[index];
  TensorSpec spec = model.input_specs[index];
  if (given) {
    if (given->ndim < 0 || given->ndim > HN_MAX_NDIM)
      throw ShapeError({.op = "hn_batcher_create",
                        .input = name,
                        .expected = "1 to " + std::to_string(HN_MAX_NDIM) + " axes",
                        .given = std::to_string(given->ndim)});
    spec.shape = Shape(std::span<const int64_t>(given->shape, static_cast<size_t>(given->ndim)));
    if (given->dtype != -1) spec.dtype = c_api::dtype_of(given->dtype, "hn_batcher_create", name.c_str());
  }
  if (spec.dtype == DType::kUnknown) spec.dtype = DType::kFloat32;
  if (spec.shape.ndim() > 0) spec.shape[0] = 1;
  if (spec.shape.ndim() < 1 || !spec.shape.known())
    throw ShapeError({.op = "hn_batcher_create",
                      .input = name,
                      .expected = "a first axis of rows, and all sizes behind it",
                      .given = spec.shape.str(),
                      .fix = given ? "" : "give the inputs' shapes: the file does not contain them"});
  return spec;
}

BatchQueue::Options options_of(const HnBatcherOptions* given) {
  BatchQueue::Options options;
  if (!given) return options;
  if (given->struct_size != sizeof(HnBatcherOptions))
    throw ValueError({.op = "hn_batcher_create",
                      .input = "options->struct_size",
                      .expected = std::to_string(sizeof(HnBatcherOptions)),
                      .given = std::to_string(given->struct_size)});
  const auto check = [](const char* name, int64_t value, int64_t most) {
    if (value < 0 || value > most)
      throw ValueError({.op = "hn_batcher_create",
                        .input = std::string("options->") + name,
                        .expected = "0 to " + std::to_string(most),
                        .given = std::to_string(value)});
    return value;
  };
  if (check("max_rows", given->max_rows, int64_t{1} << 30) > 0) options.max_rows = given->max_rows;
  if (check("max_waiting", given->max_waiting, int64_t{1} << 30) > 0)
    options.max_waiting = static_cast<size_t>(given->max_waiting);
  if (check("calls", given->calls, 1024) > 0) options.calls = static_cast<int>(given->calls);
  options.max_wait_ns = 1000 * check("max_wait_us", given->max_wait_us, 3'600'000'000);
  return options;
}

}  // namespace

int hn_batcher_create(HnModel model, size_t num_inputs, const HnTensorSpec* inputs, const HnBatcherOptions* options,
                      HnBatcher* out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_batcher_create", "model");
    require(out, "hn_batcher_create", "out");
    if (inputs || num_inputs > 0) c_api::check_count(num_inputs, given->input_names, "hn_batcher_create", "num_inputs");
    if (num_inputs > 0) require(inputs, "hn_batcher_create", "inputs");
    std::vector<BatchQueue::Input> wanted;
    for (size_t i = 0; i < given->input_names.size(); ++i)
      wanted.push_back(
          {given->input_names[i], given->input_positions[i], spec_of(*given, i, inputs ? inputs + i : nullptr)});
    *out = static_cast<HnBatcher>(
        c_api::make_handle(std::make_unique<BatcherHandle>(*given, std::move(wanted), options_of(options))));
  });
}

int hn_batcher_run(HnBatcher batcher, size_t num_inputs, const HnArray* inputs, size_t num_outputs, HnArray* outputs) {
  return guarded([&] {
    const Pinned<BatcherHandle> given(batcher, "hn_batcher_run", "batcher");
    c_api::check_count(num_inputs, given->input_names, "hn_batcher_run", "num_inputs");
    c_api::check_count(num_outputs, given->output_names, "hn_batcher_run", "num_outputs");
    require(outputs, "hn_batcher_run", "outputs");
    const std::vector<NDArray> arrays = c_api::arrays_of(num_inputs, inputs, "hn_batcher_run", "inputs");
    c_api::give_arrays(given->queue.run(arrays), outputs);
  });
}

int hn_batcher_close(HnBatcher batcher) {
  return guarded([&] { Pinned<BatcherHandle>(batcher, "hn_batcher_close", "batcher")->queue.close(); });
}

int hn_batcher_free(HnBatcher batcher) {
  return guarded([&] { c_api::free_handle<BatcherHandle>(batcher, "hn_batcher_free"); });
}
