// cuBLASLt by its stand-in (tests/cuda): plans, their cache, and what the stand-in reports about wrong calls.
#include <algorithm>
#include <string>
#include <vector>

#include "cuda/products.h"
#include "device/stand_in.h"
#include "hybridnet/error.h"

namespace hybridnet::test {
namespace {

using cuda::CublasLt;
using device::ProductCall;

class CublasLtTest : public StandIn {
 protected:
  void SetUp() override {
    StandIn::SetUp();
    if (!library_) return;
    std::string why;
    products_ = cuda::Products::load({cuda::stand_in_library()}, &why);
    ASSERT_NE(products_, nullptr) << why;
  }
  void TearDown() override {
    if (products_) products_->release(0);
    products_.reset();
    StandIn::TearDown();
  }

  // C = A B of (2, 3) and (3, 2) matrices.
  ProductCall small() {
    ProductCall call{.m = 2, .n = 2, .k = 3, .lda = 3, .ldb = 2, .ldc = 2};
    call.a = at(upload({1, 2, 3, 4, 5, 6}));
    call.b = at(upload({1, 0, 0, 1, 1, 1}));
    call.c = at(upload({7, 7, 7, 7}));
    return call;
  }
  static void* at(Memory memory, size_t bytes = 0) { return reinterpret_cast<void*>(memory + bytes); }
  std::vector<float> result(const ProductCall& call) {
    return download(reinterpret_cast<Memory>(call.c), static_cast<size_t>(call.m * call.ldc));
  }
  void multiply(const ProductCall& call) {
    const auto plan = products_->plan(call, 0);
    ASSERT_NE(plan, nullptr);
    const Memory workspace = allocate(static_cast<size_t>(std::max<int64_t>(plan->workspace_bytes, 1)));
    products_->run(*plan, call, at(workspace), static_cast<cuda::StreamHandle>(stream_));
  }
  int64_t counter(size_t number) {
    std::vector<long long> values(14);
    call("hnstandin_counters", values.data(), static_cast<int>(values.size()));
    return values[number];
  }
  int64_t live_objects() { return counter(13); }
  int64_t choices() { return counter(12); }

  std::unique_ptr<cuda::Products> products_;
};

TEST_F(CublasLtTest, MultipliesRowMajorMatricesInEachTransposition) {
  EXPECT_EQ(products_->version(), "13.1.0");
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      ProductCall call{.transpose_a = transpose_a,
                       .transpose_b = transpose_b,
                       .m = 2,
                       .n = 3,
                       .k = 2,
                       .lda = transpose_a ? 2 : 4,
                       .ldb = transpose_b ? 2 : 3,
                       .ldc = 5,
                       .alpha = 2,
                       .beta = 3};
      call.a = at(upload(transpose_a ? std::vector<float>{1, 3, 2, 4} : std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0}));
      call.b = at(upload(transpose_b ? std::vector<float>{5, 8, 6, 9, 7, 10} : std::vector<float>{5, 6, 7, 8, 9, 10}));
      call.c = at(upload({1, 1, 1, -1, -1, 1, 1, 1, -1, -1}));
      multiply(call);
      EXPECT_EQ(result(call), (std::vector<float>{45, 51, 57, -1, -1, 97, 111, 125, -1, -1}));
    }
  EXPECT_EQ(reports(), "");
}

TEST_F(CublasLtTest, RepeatsAMatrixOfABatchWithStepZero) {
  ProductCall call{
      .m = 1, .n = 1, .k = 2, .lda = 2, .ldb = 1, .ldc = 1, .batch = 3, .a_step = 0, .b_step = 2, .c_step = 1};
  call.a = at(upload({1, 10}));
  call.b = at(upload({1, 2, 3, 4, 5, 6}));
  call.c = at(upload({0, 0, 0}));
  multiply(call);
  EXPECT_EQ(download(reinterpret_cast<Memory>(call.c), 3), (std::vector<float>{21, 43, 65}));
  EXPECT_EQ(reports(), "");
}

TEST_F(CublasLtTest, LeavesProductsToOurKernelThatItsInterfaceDoesNotDescribe) {
  const ProductCall good = small();
  EXPECT_NE(products_->plan(good, 0), nullptr);
  const auto changed = [&](auto change) {
    ProductCall call = good;
    change(call);
    return products_->plan(call, 0);
  };
  EXPECT_EQ(changed([](ProductCall& c) { c.k = 1; }), nullptr);
  EXPECT_EQ(changed([](ProductCall& c) { c.k = 0; }), nullptr);
  EXPECT_EQ(changed([](ProductCall& c) { c.alpha = 0; }), nullptr);
  EXPECT_EQ(changed([](ProductCall& c) { c.lda = 2; }), nullptr);  // rows that overlap
  EXPECT_EQ(changed([](ProductCall& c) { c.m = int64_t{1} << 31; }), nullptr);
  EXPECT_EQ(changed([](ProductCall& c) { c.batch = 2; }), nullptr);  // C twice in one place
  EXPECT_EQ(changed([](ProductCall& c) { c.batch = 2, c.c_step = 4, c.a_step = -6; }), nullptr);
  EXPECT_EQ(reports(), "");
}

TEST_F(CublasLtTest, PreparesALayoutOnceForEachAlignmentOfItsOperands) {
  ProductCall call = small();
  const auto plan = products_->plan(call, 0);
  EXPECT_EQ(products_->plan(call, 0), plan);
  call.a = at(upload({1, 2, 3, 4, 5, 6}));  // elsewhere, equally aligned
  EXPECT_EQ(products_->plan(call, 0), plan);
  EXPECT_EQ(choices(), 1);
  call.a = at(upload({0, 1, 2, 3, 4, 5, 6}), sizeof(float));
  EXPECT_NE(products_->plan(call, 0), plan);
  call.reduced_float32 = true;
  products_->plan(call, 0);
  EXPECT_EQ(choices(), 3);
}

TEST_F(CublasLtTest, KeepsABoundedNumberOfPlans) {
  const int64_t before = live_objects();
  ProductCall call = small();
  const auto first = products_->plan(call, 0);
  const int64_t of_a_plan = live_objects() - before - 1;  // without the handle
  for (size_t i = 0; i < cuda::kMostLibraryPlans + 20; ++i) {
    call.lda = 4 + static_cast<int64_t>(i);
    products_->plan(call, 0);
  }
  EXPECT_EQ(live_objects() - before - 1, of_a_plan * static_cast<int64_t>(cuda::kMostLibraryPlans + 1));
  call.lda = 3;
  EXPECT_NE(products_->plan(call, 0), first);  // it was dropped, and lives because it is in use here
}

TEST_F(CublasLtTest, FreesWhatItHasPreparedWhenACallFails) {
  ProductCall call = small();
  const int64_t none = live_objects();
  StandIn::call("hnstandin_fail", "cublasLtCreate:1");
  EXPECT_THROW(products_->plan(call, 0), EngineError);
  EXPECT_EQ(live_objects(), none);
  EXPECT_NE(products_->plan(call, 0), nullptr);
  const int64_t before = live_objects();
  call.m = 1;
  for (const char* function : {"cublasLtMatmulDescCreate:1", "cublasLtMatrixLayoutCreate:3",
                               "cublasLtMatmulPreferenceSetAttribute:6", "cublasLtMatmulAlgoGetHeuristic:1"}) {
    StandIn::call("hnstandin_fail", function);
    EXPECT_THROW(products_->plan(call, 0), EngineError) << function;
    EXPECT_EQ(live_objects(), before);
  }
  StandIn::call("hnstandin_fail", "");
  EXPECT_NE(products_->plan(call, 0), nullptr);
}

// Wrong calls, which a GPU might answer by wrong numbers.
class CublasLtMisuse : public CublasLtTest {
 protected:
  std::string reports_of(const ProductCall& planned, const ProductCall& run, int64_t missing_workspace = 0) {
    const auto plan = products_->plan(planned, 0);
    const auto bytes = static_cast<size_t>(plan->workspace_bytes);
    const Memory workspace = allocate(bytes);
    auto cut = const_cast<cuda::Products::Plan*>(plan.get());
    cut->workspace_bytes -= missing_workspace;
    try {
      products_->run(*plan, run, at(workspace), static_cast<cuda::StreamHandle>(stream_));
      call("cuStreamSynchronize", stream_);
    } catch (const EngineError&) {
    }
    cut->workspace_bytes += missing_workspace;
    return reports();
  }
};

TEST_F(CublasLtMisuse, IsReported) {
  const ProductCall good = small();
  EXPECT_EQ(reports_of(good, good), "");
  ProductCall bad = good;
  bad.a = at(upload({0, 1, 2, 3, 4, 5, 6}), sizeof(float));
  EXPECT_NE(reports_of(good, bad).find("alignment"), std::string::npos);
  bad = good;
  bad.b = at(upload({1, 2, 3}));
  EXPECT_NE(reports_of(good, bad).find("bad address"), std::string::npos);
  bad = good;
  bad.b = good.c;
  EXPECT_NE(reports_of(good, bad).find("not inside"), std::string::npos);
  bad = good;
  bad.c = const_cast<void*>(good.a);
  EXPECT_NE(reports_of(good, bad).find("overlap"), std::string::npos);
  EXPECT_NE(reports_of(good, good, 4).find("workspace"), std::string::npos);
  float host[6] = {};
  bad = good;
  bad.a = host;
  EXPECT_NE(reports_of(good, bad).find("belong to no allocation"), std::string::npos);
}

TEST_F(CublasLtMisuse, OfMemoryThatIsFreedBeforeTheProductRunsIsReported) {
  const ProductCall product = small();
  multiply(product);
  free(reinterpret_cast<Memory>(product.b));
  call("cuStreamSynchronize", stream_);
  EXPECT_NE(reports().find("early free"), std::string::npos);
}

TEST_F(CublasLtMisuse, OfAnotherStreamWithoutAWaitIsARace) {
  const ProductCall product = small();
  multiply(product);
  const Handle other = make_stream();
  EXPECT_DONE(
      call("cuMemsetD8Async", reinterpret_cast<Memory>(product.a), static_cast<unsigned char>(0), size_t{24}, other));
  call("cuStreamSynchronize", other);
  call("cuStreamSynchronize", stream_);
  EXPECT_NE(reports().find("race"), std::string::npos);
}

TEST(CublasLtFiles, AreThoseThatTheDriverCanRun) {
  const auto of_13 = cuda::cublas_lt_files("", "/cuda", 13000), of_12 = cuda::cublas_lt_files("", "/cuda", 12040);
  const auto has = [](const std::vector<std::string>& files, const char* file) {
    return std::find(files.begin(), files.end(), file) != files.end();
  };
  EXPECT_EQ(of_13.front(), "/cuda/libcublasLt.so.13");
  EXPECT_TRUE(has(of_13, "/cuda/nvidia/cu13/lib/libcublasLt.so.13"));
  EXPECT_TRUE(has(of_13, "/cuda/nvidia/cublas/lib/libcublasLt.so.12"));
  EXPECT_TRUE(has(of_13, "libcublasLt.so.13"));
  EXPECT_EQ(of_12.front(), "/cuda/libcublasLt.so.12");
  for (const std::string& file : of_12) EXPECT_FALSE(file.ends_with(".13")) << file;
  EXPECT_EQ(cuda::cublas_lt_files("stand-in", "/cuda", 13000), std::vector{cuda::stand_in_library()});
  std::string why;
  EXPECT_EQ(cuda::Products::load({"/missing/libcublasLt.so.13"}, &why), nullptr);
  EXPECT_EQ(why, "no cuBLASLt was found among 1 places, of which the first is /missing/libcublasLt.so.13");
}

}  // namespace
}  // namespace hybridnet::test
