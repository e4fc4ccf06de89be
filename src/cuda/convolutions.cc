#include "cuda/convolutions.h"

#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <span>
#include <utility>

#include "cuda/library_objects.h"

namespace hybridnet::cuda {
namespace {

using device::ConvolutionCall;
using Form = ConvolutionCall::Form;

// ---- what errors say

template <class Numbers>
std::string in_brackets(const Numbers& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "(" : ", ") + std::to_string(number);
  return text + (std::size(numbers) == 1 ? ",)" : ")");
}

std::span<const int64_t> spatial(const ConvolutionCall& call, const ConvolutionCall::Sizes& sizes) {
  return std::span(sizes).last(static_cast<size_t>(call.spatial));
}

std::string shape_text(const ConvolutionCall& call, int64_t first, int64_t second, const ConvolutionCall::Sizes& rest) {
  std::vector<int64_t> shape{first, second};
  for (const int64_t size : spatial(call, rest)) shape.push_back(size);
  return in_brackets(shape);
}

LibraryFailure failure_of(const Cudnn& library, const ConvolutionCall& call, const char* function, Result status) {
  const char* const name = library.status_name(status);
  std::string text = std::string(name ? name : "status") + " (" + std::to_string(status) + ")";
  char why[256] = "";
  if (library.last_error) library.last_error(why, sizeof why);
  why[sizeof why - 1] = '\0';
  if (why[0] != '\0') text += ", " + std::string(why);
  return {.function = function,
          .status = text,
          .given = text_of(call),
          .work = "convolutions",
          .is_of_device = is_of_device(status)};
}

using Checked = CheckedCalls<Cudnn, ConvolutionCall, failure_of>;

// ---- which convolutions and engines are taken

// False for those that our own kernel computes: empty ones; tensors with 2^31 elements or more, for which engines may
// compute places in 32 bits; and sizes that the library's definition of a convolution does not give.
bool is_supported(const ConvolutionCall& call) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto elements = [](int64_t first, int64_t second, const ConvolutionCall::Sizes& sizes) {
    return static_cast<double>(first) * static_cast<double>(second) * static_cast<double>(sizes[0]) *
           static_cast<double>(sizes[1]) * static_cast<double>(sizes[2]);
  };
  for (const double count :
       {elements(call.n, call.c, call.in), elements(call.n, call.o, call.out), elements(call.o, call.c, call.kernel)})
    if (count < 1 || count > static_cast<double>(kMost)) return false;
  for (size_t i = 0; i < 3; ++i) {
    if (std::max({call.stride[i], call.dilate[i], call.pad[i]}) > kMost) return false;
    const int64_t room = call.in[i] + 2 * call.pad[i] - ((call.kernel[i] - 1) * call.dilate[i] + 1);
    if (room < 0 || room / call.stride[i] + 1 != call.out[i]) return false;
  }
  return true;
}

// Only engines whose notes are all among these are taken:
// - Tensor cores multiply halves and float64 exactly, and float32 as TF32.
// - An engine with down-converted factors may take float16, which has not the range of float32; sums in halves and
//   nondeterministic engines break the promises of docs/gpu.md. Transforms (Winograd, FFT) add neighbors, so that one
//   infinity makes many outputs NaN, and rounding depends on the largest neighbor.
// - A note of a later version is not known to be harmless.
bool is_allowed(NumericalNote note, const ConvolutionCall& call) {
  switch (note) {
    case NumericalNote::kTensorCore:
      return call.dtype != DType::kFloat32 || call.reduced_float32;
    case NumericalNote::kStrictNan:
      return true;
    default:
      return false;
  }
}

// ---- descriptors

GraphData data_type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return GraphData::kFloat16;
    case DType::kBFloat16:
      return GraphData::kBFloat16;
    case DType::kFloat64:
      return GraphData::kFloat64;
    default:
      return GraphData::kFloat32;
  }
}

// A descriptor of the library.
class Part {
 public:
  Part(const Cudnn& library, const Checked& checked, GraphPart kind)
      : library_(&library), object_(library.descriptor_destroy) {
    checked(library.descriptor_create, kind, object_.place());
  }
  Cudnn::Descriptor get() const { return object_.get(); }

  template <class Value>
  void set_all(const Checked& checked, GraphAttribute attribute, GraphType type, std::span<const Value> values) {
    checked(library_->descriptor_set, get(), attribute, type, static_cast<int64_t>(values.size()),
            static_cast<const void*>(values.data()));
  }
  template <class Value>
  void set(const Checked& checked, GraphAttribute attribute, GraphType type, const Value& value) {
    set_all(checked, attribute, type, std::span<const Value>(&value, 1));
  }
  void set(const Checked& checked, GraphAttribute attribute, const Part& value) {
    set(checked, attribute, GraphType::kDescriptor, value.get());
  }
  void finalize(const Checked& checked) { checked(library_->finalize, get()); }
  Result try_finalize() { return library_->finalize(get()); }

 private:
  const Cudnn* library_;
  Owned<Cudnn::Descriptor> object_;
};

// Tensors in the order of W, X, Y of the attributes of all three operations; an id each.
constexpr std::array<int64_t, 3> kIds{'w', 'x', 'y'};

std::array<const void*, 3> pointers_of(const ConvolutionCall& call) { return {call.w, call.x, call.y}; }

// cuDNN's convolutions have two or three spatial axes: one is the last of two.
size_t axes_of(const ConvolutionCall& call) { return static_cast<size_t>(std::max(call.spatial, 2)); }

std::span<const int64_t> on_axes(const ConvolutionCall& call, const ConvolutionCall::Sizes& sizes) {
  return std::span(sizes).last(axes_of(call));
}

struct Layout {
  std::vector<int64_t> sizes, strides;  // (first, channels, spatial...), whatever the order in memory
  Layout(const ConvolutionCall& call, int64_t first, int64_t channels, const ConvolutionCall::Sizes& of,
         bool channels_last)
      : sizes{first, channels} {
    const std::span<const int64_t> axes = on_axes(call, of);
    sizes.insert(sizes.end(), axes.begin(), axes.end());
    strides.resize(sizes.size());
    int64_t step = 1;
    const auto place = [&](size_t axis) { strides[axis] = step, step *= sizes[axis]; };
    if (channels_last) place(1);
    for (size_t axis = sizes.size() - 1; axis >= 2; --axis) place(axis);
    if (!channels_last) place(1);
    place(0);
  }
};

std::array<Layout, 3> layouts_of(const ConvolutionCall& call) {
  return {Layout(call, call.o, call.c / call.groups, call.kernel, call.weights_last),
          Layout(call, call.n, call.c, call.in, call.channels_last),
          Layout(call, call.n, call.o, call.out, call.channels_last)};
}

struct Operation {
  GraphPart part;
  GraphAttribute alpha, beta, convolution;
  std::array<GraphAttribute, 3> tensors;  // W, X, Y
};

Operation operation_of(Form form) {
  using A = GraphAttribute;
  switch (form) {
    case Form::kForward:
      return {GraphPart::kForward,
              A::kForwardAlpha,
              A::kForwardBeta,
              A::kForwardConvolution,
              {A::kForwardW, A::kForwardX, A::kForwardY}};
    case Form::kDataGradient:
      return {GraphPart::kDataGradient,
              A::kDataGradientAlpha,
              A::kDataGradientBeta,
              A::kDataGradientConvolution,
              {A::kDataGradientW, A::kDataGradientDx, A::kDataGradientDy}};
    case Form::kFilterGradient:
      break;
  }
  return {GraphPart::kFilterGradient,
          A::kFilterGradientAlpha,
          A::kFilterGradientBeta,
          A::kFilterGradientConvolution,
          {A::kFilterGradientDw, A::kFilterGradientX, A::kFilterGradientDy}};
}

}  // namespace

std::string text_of(const ConvolutionCall& call) {
  const char* const names[] = {"convolution", "data gradient of a convolution", "weight gradient of a convolution"};
  return std::string(dtype_name(call.dtype)) + " " + names[static_cast<size_t>(call.form)] + ": data " +
         shape_text(call, call.n, call.c, call.in) + ", weight " +
         shape_text(call, call.o, call.c / call.groups, call.kernel) + ", output " +
         shape_text(call, call.n, call.o, call.out) + ", stride " + in_brackets(spatial(call, call.stride)) + ", pad " +
         in_brackets(spatial(call, call.pad)) + ", dilate " + in_brackets(spatial(call, call.dilate)) + ", num_group " +
         std::to_string(call.groups);
}

// An operation graph of one operation, and an engine for it. All descriptors on which the plan depends live with it.
class Convolutions::GraphPlan final : public Plan {
 public:
  GraphPlan(const Cudnn& library, const Wait& wait) : library_(library), wait_(wait) {}
  ~GraphPlan() override {
    if (last_stream_) wait_(last_stream_);
    while (!parts_.empty()) parts_.pop_back();
  }

  // False: the library has no engine that is allowed.
  bool prepare(const ConvolutionCall& call, OfDevice& device) {
    const Checked checked(library_, call);
    device_ = &device;
    const std::lock_guard lock(device.mutex);
    const Part& operation = add_operation(call, checked);
    Part& graph = add(checked, GraphPart::kOperationGraph);
    graph.set(checked, GraphAttribute::kGraphHandle, GraphType::kHandle, device.handle);
    graph.set(checked, GraphAttribute::kGraphOperations, operation);
    if (!is_finalized(graph, checked)) return false;
    for (const HeuristicsMode mode : {HeuristicsMode::kRanked, HeuristicsMode::kFallback})
      if (choose(graph, mode, call, checked)) return true;
    return false;
  }

  void run(const ConvolutionCall& call, void* workspace, StreamHandle stream) const {
    const Checked checked(library_, call);
    Part pack(library_, checked, GraphPart::kVariantPack);
    const std::array<const void*, 3> pointers = pointers_of(call);
    pack.set_all(checked, GraphAttribute::kPackIds, GraphType::kInt64, std::span<const int64_t>(kIds));
    pack.set_all(checked, GraphAttribute::kPackPointers, GraphType::kPointer, std::span<const void* const>(pointers));
    pack.set(checked, GraphAttribute::kPackWorkspace, GraphType::kPointer, workspace);
    pack.finalize(checked);
    const std::lock_guard lock(device_->mutex);
    last_stream_ = stream;
    checked(library_.set_stream, device_->handle, stream);
    checked(library_.execute, device_->handle, parts_.back().get(), pack.get());
  }

 private:
  Part& add(const Checked& checked, GraphPart kind) { return parts_.emplace_back(library_, checked, kind); }

  // False: the library does not support what the descriptor describes.
  bool is_finalized(Part& part, const Checked& checked) const {
    const Result status = part.try_finalize();
    if (status == kSuccess) return true;
    if (is_unsupported(status) || status == kCompilationFailed) return false;
    checked.fail(library_.finalize.name, status);
  }

  const Part& add_operation(const ConvolutionCall& call, const Checked& checked) {
    const Operation operation = operation_of(call.form);
    std::array<const Part*, 3> tensors{};
    for (size_t i = 0; i < 3; ++i) tensors[i] = &add_tensor(call, i, checked);
    const Part& convolution = add_convolution(call, checked);
    Part& made = add(checked, operation.part);
    const bool wide = call.dtype == DType::kFloat64;
    const auto set_factor = [&](GraphAttribute attribute, double factor) {
      if (wide) return made.set(checked, attribute, GraphType::kDouble, factor);
      made.set(checked, attribute, GraphType::kFloat, static_cast<float>(factor));
    };
    set_factor(operation.alpha, 1);
    set_factor(operation.beta, 0);
    made.set(checked, operation.convolution, convolution);
    for (size_t i = 0; i < 3; ++i) made.set(checked, operation.tensors[i], *tensors[i]);
    made.finalize(checked);
    return made;
  }

  const Part& add_tensor(const ConvolutionCall& call, size_t i, const Checked& checked) {
    const Layout layout = layouts_of(call)[i];
    Part& made = add(checked, GraphPart::kTensor);
    made.set(checked, GraphAttribute::kTensorId, GraphType::kInt64, kIds[i]);
    made.set(checked, GraphAttribute::kTensorDataType, GraphType::kDataType, data_type_of(call.dtype));
    made.set(checked, GraphAttribute::kTensorAlignment, GraphType::kInt64, alignment_of(pointers_of(call)[i]));
    made.set_all(checked, GraphAttribute::kTensorDimensions, GraphType::kInt64, std::span<const int64_t>(layout.sizes));
    made.set_all(checked, GraphAttribute::kTensorStrides, GraphType::kInt64, std::span<const int64_t>(layout.strides));
    made.finalize(checked);
    return made;
  }

  const Part& add_convolution(const ConvolutionCall& call, const Checked& checked) {
    Part& made = add(checked, GraphPart::kConvolution);
    const GraphData sums = call.dtype == DType::kFloat64 ? GraphData::kFloat64 : GraphData::kFloat32;
    made.set(checked, GraphAttribute::kConvolutionComputeType, GraphType::kDataType, sums);
    made.set(checked, GraphAttribute::kConvolutionMode, GraphType::kConvolutionMode,
             GraphConvolution::kCrossCorrelation);
    made.set(checked, GraphAttribute::kConvolutionSpatialDimensions, GraphType::kInt64,
             static_cast<int64_t>(axes_of(call)));
    const auto set_sizes = [&](GraphAttribute attribute, const ConvolutionCall::Sizes& sizes) {
      made.set_all(checked, attribute, GraphType::kInt64, on_axes(call, sizes));
    };
    set_sizes(GraphAttribute::kConvolutionStrides, call.stride);
    set_sizes(GraphAttribute::kConvolutionDilations, call.dilate);
    set_sizes(GraphAttribute::kConvolutionPrePaddings, call.pad);
    set_sizes(GraphAttribute::kConvolutionPostPaddings, call.pad);
    made.finalize(checked);
    return made;
  }

  // Takes the first allowed engine of a list of the library's heuristics.
  bool choose(const Part& graph, HeuristicsMode mode, const ConvolutionCall& call, const Checked& checked) {
    for (Part& config : configs_of(graph, mode, checked)) {
      if (!is_allowed(config, call, checked)) continue;
      Part plan(library_, checked, GraphPart::kExecutionPlan);
      plan.set(checked, GraphAttribute::kPlanHandle, GraphType::kHandle, device_->handle);
      plan.set(checked, GraphAttribute::kPlanConfig, config);
      if (!is_finalized(plan, checked)) continue;
      int64_t found = 0, bytes = 0;
      checked(library_.descriptor_get, plan.get(), GraphAttribute::kPlanWorkspaceBytes, GraphType::kInt64, int64_t{1},
              &found, static_cast<void*>(&bytes));
      if (found != 1 || bytes < 0 || bytes > kMostConvolutionWorkspace) continue;
      workspace_bytes = bytes;
      parts_.push_back(std::move(config));
      parts_.push_back(std::move(plan));
      return true;
    }
    return false;
  }

  // The engines that the heuristics propose, the best first.
  std::vector<Part> configs_of(const Part& graph, HeuristicsMode mode, const Checked& checked) const {
    std::vector<Part> configs;
    Part heuristics(library_, checked, GraphPart::kHeuristics);
    heuristics.set(checked, GraphAttribute::kHeuristicsGraph, graph);
    heuristics.set(checked, GraphAttribute::kHeuristicsMode, GraphType::kHeuristicsMode, mode);
    if (!is_finalized(heuristics, checked)) return configs;
    int64_t count = 0;
    get_descriptors(heuristics, GraphAttribute::kHeuristicsResults, {}, &count, checked);
    for (int64_t i = 0; i < count; ++i) configs.emplace_back(library_, checked, GraphPart::kEngineConfig);
    std::vector<Cudnn::Descriptor> places;
    for (const Part& config : configs) places.push_back(config.get());
    if (!places.empty()) get_descriptors(heuristics, GraphAttribute::kHeuristicsResults, places, &count, checked);
    while (std::ssize(configs) > count) configs.pop_back();
    return configs;
  }

  // Writes to the descriptors of `places`.
  void get_descriptors(const Part& from, GraphAttribute attribute, std::span<Cudnn::Descriptor> places, int64_t* count,
                       const Checked& checked) const {
    checked(library_.descriptor_get, from.get(), attribute, GraphType::kDescriptor, std::ssize(places), count,
            static_cast<void*>(places.data()));
  }

  bool is_allowed(const Part& config, const ConvolutionCall& call, const Checked& checked) const {
    const Part engine(library_, checked, GraphPart::kEngine);
    std::array<Cudnn::Descriptor, 1> place{engine.get()};
    int64_t count = 0;
    get_descriptors(config, GraphAttribute::kConfigEngine, place, &count, checked);
    std::array<NumericalNote, 32> notes{};
    checked(library_.descriptor_get, engine.get(), GraphAttribute::kEngineNumericalNotes, GraphType::kNumericalNote,
            std::ssize(notes), &count, static_cast<void*>(notes.data()));
    if (count > std::ssize(notes)) return false;
    return std::all_of(notes.begin(), notes.begin() + count,
                       [&](NumericalNote note) { return cuda::is_allowed(note, call); });
  }

  const Cudnn& library_;
  const Wait& wait_;
  OfDevice* device_ = nullptr;
  mutable StreamHandle last_stream_ = nullptr;  // guarded by the device's mutex; the device has one stream for kernels
  std::list<Part> parts_;  // each after those that it refers to; the last one is the execution plan
};

std::vector<std::string> cudnn_files(const std::string& driver, const std::string& folders) {
  return library_files(kCudnn, driver, folders, {9});
}

std::unique_ptr<Convolutions> Convolutions::load(const std::vector<std::string>& files, int driver_version, Wait wait,
                                                 std::string* why_none) {
  std::unique_ptr<Convolutions> made(new Convolutions(std::move(wait)));
  const std::string file = load_first(kCudnn, files, made->library_.table(), why_none);
  if (file.empty()) return nullptr;
  made->file_ = file_of(made->library_.version, file);
  if (const int needed = made->cuda_version(); needed > driver_version / 1000) {
    *why_none = made->file_ + " is for CUDA " + std::to_string(needed) + ", and the driver for CUDA " +
                std::to_string(driver_version / 1000);
    return nullptr;
  }
  return made;
}

std::string Convolutions::version() const {
  const size_t number = library_.version();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

int Convolutions::cuda_version() const { return static_cast<int>(library_.runtime_version() / 1000); }

std::shared_ptr<const Convolutions::Plan> Convolutions::plan(const ConvolutionCall& call, int device) {
  if (!is_supported(call)) return nullptr;
  Plans::Key key{device,
                 static_cast<int64_t>(call.dtype),
                 static_cast<int64_t>(call.form),
                 call.reduced_float32,
                 call.channels_last,
                 call.weights_last,
                 call.spatial,
                 call.n,
                 call.c,
                 call.o,
                 call.groups,
                 alignment_of(call.x),
                 alignment_of(call.w),
                 alignment_of(call.y)};
  auto next = key.begin() + 14;
  for (const ConvolutionCall::Sizes* sizes : {&call.in, &call.out, &call.kernel, &call.stride, &call.dilate, &call.pad})
    next = std::copy(sizes->begin(), sizes->end(), next);
  const auto create = [&]() -> Cudnn::Handle {
    Cudnn::Handle handle = nullptr;
    const Result status = library_.create(&handle);
    if (is_unsupported(status)) return nullptr;  // a GPU or a driver that this version does not know
    if (status != kSuccess) Checked(library_, call).fail(library_.create.name, status);
    return handle;
  };
  return plans_.get(key, create, [&](OfDevice& of_device) -> std::shared_ptr<const Plan> {
    auto made = std::make_shared<GraphPlan>(library_, wait_);
    if (!of_device.handle || !made->prepare(call, of_device)) return nullptr;
    return made;
  });
}

void Convolutions::run(const Plan& plan, const ConvolutionCall& call, void* workspace, StreamHandle stream) const {
  static_cast<const GraphPlan&>(plan).run(call, workspace, stream);
}

void Convolutions::release(int device) noexcept { plans_.release(device, library_.destroy); }

}  // namespace hybridnet::cuda
