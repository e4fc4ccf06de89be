// cuDNN by its stand-in (tests/cuda): plans, their cache, and what the stand-in reports about wrong calls.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cuda/convolutions.h"
#include "device/stand_in.h"
#include "hybridnet/error.h"

namespace hybridnet::test {
namespace {

using cuda::GraphAttribute;
using cuda::GraphPart;
using cuda::GraphType;
using device::ConvolutionCall;
using Form = ConvolutionCall::Form;

class CudnnTest : public StandIn {
 protected:
  void SetUp() override {
    StandIn::SetUp();
    if (!library_) return;
    std::string why;
    convolutions_ = cuda::Convolutions::load({cuda::stand_in_library()}, 12080, wait(), &why);
    ASSERT_NE(convolutions_, nullptr) << why;
  }
  void TearDown() override {
    if (convolutions_) convolutions_->release(0);
    convolutions_.reset();
    StandIn::TearDown();
  }

  cuda::Convolutions::Wait wait() {
    return [this](cuda::StreamHandle stream) { call("cuStreamSynchronize", stream); };
  }
  // Images of 1 x 3 elements with two channels, filters of two taps and one output channel.
  ConvolutionCall small(Form form = Form::kForward) {
    ConvolutionCall call{.form = form, .spatial = 1, .n = 1, .c = 2, .o = 1};
    call.in = {1, 1, 3}, call.out = {1, 1, 2}, call.kernel = {1, 1, 2};
    call.x = at(upload({1, 2, 3, 10, 20, 30}));
    call.w = at(upload({1, 2, 3, 4}));
    call.y = at(upload({1, 100}));
    return call;
  }
  static void* at(Memory memory, size_t bytes = 0) { return reinterpret_cast<void*>(memory + bytes); }
  std::vector<float> values(const void* memory, size_t count) {
    return download(reinterpret_cast<Memory>(memory), count);
  }
  void convolve(const ConvolutionCall& call) {
    const auto plan = convolutions_->plan(call, 0);
    ASSERT_NE(plan, nullptr);
    run(*plan, call);
  }
  void run(const cuda::Convolutions::Plan& plan, const ConvolutionCall& call) {
    const Memory workspace = allocate(static_cast<size_t>(std::max<int64_t>(plan.workspace_bytes, 1)));
    convolutions_->run(plan, call, at(workspace), static_cast<cuda::StreamHandle>(stream_));
  }
  int64_t counter(size_t number) {
    std::vector<long long> values(18);
    call("hnstandin_counters", values.data(), static_cast<int>(values.size()));
    return values[number];
  }
  int64_t live_objects() { return counter(13); }
  int64_t choices() { return counter(17); }

  std::unique_ptr<cuda::Convolutions> convolutions_;
};

TEST_F(CudnnTest, ComputesAConvolutionAndItsGradients) {
  EXPECT_EQ(convolutions_->version(), "9.14.0");
  const ConvolutionCall forward = small();
  convolve(forward);
  EXPECT_EQ(values(forward.y, 2), (std::vector<float>{1 + 4 + 30 + 80, 2 + 6 + 60 + 120}));
  const ConvolutionCall data = small(Form::kDataGradient);
  convolve(data);
  EXPECT_EQ(values(data.x, 6), (std::vector<float>{1, 102, 200, 3, 304, 400}));
  const ConvolutionCall filter = small(Form::kFilterGradient);
  convolve(filter);
  EXPECT_EQ(values(filter.w, 4), (std::vector<float>{201, 302, 2010, 3020}));
  EXPECT_EQ(reports(), "");
}

TEST_F(CudnnTest, LeavesConvolutionsToOurKernelThatItsInterfaceDoesNotDescribe) {
  const ConvolutionCall good = small();
  EXPECT_NE(convolutions_->plan(good, 0), nullptr);
  const auto changed = [&](auto change) {
    ConvolutionCall call = good;
    change(call);
    return convolutions_->plan(call, 0);
  };
  EXPECT_EQ(changed([](ConvolutionCall& c) { c.n = 0; }), nullptr);
  EXPECT_EQ(changed([](ConvolutionCall& c) { c.n = int64_t{1} << 29; }), nullptr);  // 3 * 2^30 elements
  EXPECT_EQ(changed([](ConvolutionCall& c) { c.out[2] = 1; }), nullptr);            // not the size of the definition
  EXPECT_EQ(changed([](ConvolutionCall& c) { c.kernel[2] = 4; }), nullptr);
  EXPECT_EQ(reports(), "");
}

TEST_F(CudnnTest, PreparesALayoutOnceForEachAlignmentOfItsTensors) {
  ConvolutionCall call = small();
  const auto plan = convolutions_->plan(call, 0);
  EXPECT_EQ(convolutions_->plan(call, 0), plan);
  call.x = at(upload({1, 2, 3, 4, 5, 6}));  // elsewhere, equally aligned
  EXPECT_EQ(convolutions_->plan(call, 0), plan);
  EXPECT_EQ(choices(), 1);
  call.x = at(upload({0, 1, 2, 3, 4, 5, 6}), sizeof(float));
  EXPECT_NE(convolutions_->plan(call, 0), plan);
  call.reduced_float32 = true;
  convolutions_->plan(call, 0);
  EXPECT_EQ(choices(), 3);
}

TEST_F(CudnnTest, KeepsABoundedNumberOfPlans) {
  const int64_t before = live_objects();
  ConvolutionCall call = small();
  convolve(call);
  const int64_t of_a_plan = live_objects() - before - 1;  // without the handle
  for (size_t i = 0; i < cuda::kMostLibraryPlans + 5; ++i) {
    call.n = 2 + static_cast<int64_t>(i);
    convolutions_->plan(call, 0);
  }
  EXPECT_EQ(live_objects() - before - 1, of_a_plan * static_cast<int64_t>(cuda::kMostLibraryPlans));
  EXPECT_EQ(values(call.y, 1), (std::vector<float>{1 + 4 + 30 + 80}));
  EXPECT_EQ(reports(), "");  // the first plan was dropped after its convolution
  const int64_t known = choices();
  call.n = 1;
  EXPECT_NE(convolutions_->plan(call, 0), nullptr);
  EXPECT_EQ(choices(), known + 1);
}

TEST_F(CudnnTest, ReleasesThePlansOfADeviceBeforeItsHandle) {
  const int64_t before = live_objects();
  const ConvolutionCall call = small();
  convolve(call);
  convolutions_->release(0);
  EXPECT_EQ(live_objects(), before);
  convolve(call);
  EXPECT_EQ(reports(), "");
}

TEST_F(CudnnTest, MayBeUsedByTwoThreads) {
  const ConvolutionCall first = small(), second = small();
  const auto plan = convolutions_->plan(first, 0);
  const Memory workspaces[] = {allocate(static_cast<size_t>(plan->workspace_bytes)),
                               allocate(static_cast<size_t>(plan->workspace_bytes))};
  std::atomic<int> failures = 0;
  const auto work = [&](const ConvolutionCall& call, Memory workspace) {
    Handle context = nullptr;
    StandIn::call("cuDevicePrimaryCtxRetain", &context, 0);
    StandIn::call("cuCtxSetCurrent", context);
    try {
      for (int i = 0; i < 300; ++i)
        convolutions_->run(*plan, call, at(workspace), static_cast<cuda::StreamHandle>(stream_));
    } catch (const EngineError&) {
      ++failures;
    }
  };
  std::thread other([&] { work(second, workspaces[1]); });
  work(first, workspaces[0]);
  other.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(values(first.y, 1), values(second.y, 1));
  EXPECT_EQ(reports(), "");
}

TEST_F(CudnnTest, NamesTheConvolutionInAnError) {
  ConvolutionCall call = small();
  call.dtype = DType::kFloat64;
  EXPECT_EQ(cuda::text_of(call),
            "float64 convolution: data (1, 2, 3), weight (1, 2, 2), output (1, 1, 2), stride (1,), pad (0,), dilate "
            "(1,), num_group 1");
}

// Wrong calls, which a GPU might answer by wrong numbers.
class CudnnMisuse : public CudnnTest {
 protected:
  std::string reports_of(const ConvolutionCall& planned, const ConvolutionCall& used) {
    const auto plan = convolutions_->plan(planned, 0);
    try {
      run(*plan, used);
      call("cuStreamSynchronize", stream_);
    } catch (const EngineError&) {
    }
    return reports();
  }

  void* made(GraphPart part) {
    void* descriptor = nullptr;
    EXPECT_DONE(call("cudnnBackendCreateDescriptor", part, &descriptor));
    return descriptor;
  }
  template <class T>
  int set(void* descriptor, GraphAttribute attribute, GraphType type, const std::vector<T>& values) {
    return call("cudnnBackendSetAttribute", descriptor, attribute, type, static_cast<int64_t>(values.size()),
                static_cast<const void*>(values.data()));
  }
  int finalize(void* descriptor) { return call("cudnnBackendFinalize", descriptor); }
  void* tensor(int64_t id, const std::vector<int64_t>& sizes) {
    void* const descriptor = made(GraphPart::kTensor);
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
    EXPECT_DONE(set(descriptor, GraphAttribute::kTensorId, GraphType::kInt64, std::vector{id}));
    EXPECT_DONE(set(descriptor, GraphAttribute::kTensorDataType, GraphType::kDataType, std::vector{0}));
    EXPECT_DONE(set(descriptor, GraphAttribute::kTensorAlignment, GraphType::kInt64, std::vector<int64_t>{16}));
    EXPECT_DONE(set(descriptor, GraphAttribute::kTensorDimensions, GraphType::kInt64, sizes));
    EXPECT_DONE(set(descriptor, GraphAttribute::kTensorStrides, GraphType::kInt64, strides));
    return descriptor;
  }
};

TEST_F(CudnnMisuse, IsReported) {
  const ConvolutionCall good = small();
  EXPECT_EQ(reports_of(good, good), "");
  ConvolutionCall bad = good;
  bad.x = at(upload({0, 1, 2, 3, 4, 5, 6}), sizeof(float));
  EXPECT_NE(reports_of(good, bad).find("alignment"), std::string::npos);
  bad = good;
  bad.w = at(upload({1, 2}));
  EXPECT_NE(reports_of(good, bad).find("bad address"), std::string::npos);
  bad = good;
  bad.y = good.x;
  EXPECT_NE(reports_of(good, bad).find("overlap"), std::string::npos);
  float host[6] = {};
  bad = good;
  bad.x = host;
  EXPECT_NE(reports_of(good, bad).find("belong to no allocation"), std::string::npos);
}

TEST_F(CudnnMisuse, OfMemoryThatIsFreedBeforeTheConvolutionRunsIsReported) {
  const ConvolutionCall convolution = small();
  convolve(convolution);
  free(reinterpret_cast<Memory>(convolution.w));
  call("cuStreamSynchronize", stream_);
  EXPECT_NE(reports().find("early free"), std::string::npos);
}

TEST_F(CudnnMisuse, OfAnotherStreamWithoutAWaitIsARace) {
  const ConvolutionCall convolution = small();
  convolve(convolution);
  const Handle other = make_stream();
  EXPECT_DONE(call("cuMemsetD8Async", reinterpret_cast<Memory>(convolution.x), static_cast<unsigned char>(0),
                   size_t{24}, other));
  call("cuStreamSynchronize", other);
  call("cuStreamSynchronize", stream_);
  EXPECT_NE(reports().find("race"), std::string::npos);
}

// The statuses are those of cuDNN 9.28, except that it finalizes tensors with sizes of 0.
TEST_F(CudnnMisuse, OfDescriptorsIsRefused) {
  void* const good = tensor('x', {1, 2, 3, 3});
  EXPECT_EQ(set(good, GraphAttribute::kTensorId, GraphType::kFloat, std::vector<int64_t>{1}), 2010);
  EXPECT_EQ(set(good, GraphAttribute::kForwardAlpha, GraphType::kFloat, std::vector{1.0f}), 2000);
  EXPECT_EQ(set(good, GraphAttribute::kTensorId, GraphType::kInt64, std::vector<int64_t>{1, 2}), 2000);
  EXPECT_DONE(finalize(good));
  EXPECT_EQ(set(good, GraphAttribute::kTensorId, GraphType::kInt64, std::vector<int64_t>{1}), 2000);
  EXPECT_EQ(finalize(made(GraphPart::kTensor)), 2000);  // nothing is set
  EXPECT_EQ(finalize(tensor('x', {1, 0, 3, 3})), 2000);
  void* const unaligned = tensor('x', {1, 2, 3, 3});
  EXPECT_DONE(set(unaligned, GraphAttribute::kTensorAlignment, GraphType::kInt64, std::vector<int64_t>{2}));
  EXPECT_EQ(finalize(unaligned), 2000);
  void* const short_strides = tensor('x', {1, 2, 3, 3});
  EXPECT_DONE(set(short_strides, GraphAttribute::kTensorStrides, GraphType::kInt64, std::vector<int64_t>{9, 3, 1}));
  EXPECT_EQ(finalize(short_strides), 2000);
  EXPECT_NE(reports().find("descriptor: "), std::string::npos);
}

TEST_F(CudnnMisuse, OfAnOperationIsRefused) {
  void* const convolution = made(GraphPart::kConvolution);
  EXPECT_DONE(set(convolution, GraphAttribute::kConvolutionComputeType, GraphType::kDataType, std::vector{0}));
  EXPECT_DONE(set(convolution, GraphAttribute::kConvolutionMode, GraphType::kConvolutionMode, std::vector{1}));
  EXPECT_DONE(
      set(convolution, GraphAttribute::kConvolutionSpatialDimensions, GraphType::kInt64, std::vector<int64_t>{2}));
  for (const GraphAttribute sizes : {GraphAttribute::kConvolutionStrides, GraphAttribute::kConvolutionDilations})
    EXPECT_DONE(set(convolution, sizes, GraphType::kInt64, std::vector<int64_t>{1, 1}));
  for (const GraphAttribute pads : {GraphAttribute::kConvolutionPrePaddings, GraphAttribute::kConvolutionPostPaddings})
    EXPECT_DONE(set(convolution, pads, GraphType::kInt64, std::vector<int64_t>{0, 0}));
  EXPECT_DONE(finalize(convolution));
  const auto status_with = [&](const std::vector<int64_t>& w, const std::vector<int64_t>& y, bool finalized = true) {
    std::vector<void*> tensors = {tensor('w', w), tensor('x', {2, 4, 5, 5}), tensor('y', y)};
    for (size_t i = 0; finalized && i < 3; ++i) EXPECT_DONE(finalize(tensors[i]));
    void* const operation = made(GraphPart::kForward);
    EXPECT_DONE(set(operation, GraphAttribute::kForwardAlpha, GraphType::kFloat, std::vector{1.0f}));
    EXPECT_DONE(set(operation, GraphAttribute::kForwardBeta, GraphType::kFloat, std::vector{0.0f}));
    EXPECT_DONE(set(operation, GraphAttribute::kForwardConvolution, GraphType::kDescriptor, std::vector{convolution}));
    const GraphAttribute places[] = {GraphAttribute::kForwardW, GraphAttribute::kForwardX, GraphAttribute::kForwardY};
    for (size_t i = 0; i < 3; ++i)
      EXPECT_DONE(set(operation, places[i], GraphType::kDescriptor, std::vector{tensors[i]}));
    return finalize(operation);
  };
  EXPECT_EQ(status_with({6, 2, 3, 3}, {2, 6, 3, 3}), 0);  // two groups
  EXPECT_EQ(status_with({6, 2, 3, 3}, {2, 6, 4, 3}), 2000);
  EXPECT_EQ(status_with({6, 3, 3, 3}, {2, 6, 3, 3}), 2000);
  EXPECT_EQ(status_with({6, 4, 3, 3}, {2, 5, 3, 3}), 2000);
  EXPECT_EQ(status_with({6, 4, 3, 3}, {2, 6, 3, 3}, false), 2000);
  EXPECT_NE(reports().find("is not finalized"), std::string::npos);
}

TEST(CudnnFiles, AreThoseOfVersion9) {
  const auto files = cuda::cudnn_files("", "/cuda");
  const auto has = [&](const char* file) { return std::find(files.begin(), files.end(), file) != files.end(); };
  EXPECT_EQ(files.front(), "/cuda/libcudnn_graph.so.9");
  EXPECT_TRUE(has("/cuda/nvidia/cudnn/lib/libcudnn_graph.so.9"));
  EXPECT_TRUE(has("libcudnn_graph.so.9"));
  EXPECT_EQ(cuda::cudnn_files("stand-in", "/cuda"), std::vector{cuda::stand_in_library()});
  std::string why;
  EXPECT_EQ(cuda::Convolutions::load({"/missing/libcudnn_graph.so.9"}, 13000, {}, &why), nullptr);
  EXPECT_EQ(why, "no cuDNN was found among 1 places, of which the first is /missing/libcudnn_graph.so.9");
}

}  // namespace
}  // namespace hybridnet::test
