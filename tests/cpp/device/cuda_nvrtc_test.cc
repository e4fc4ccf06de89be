#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cuda/backend.h"
#include "cuda/nvrtc.h"
#include "device/scripted_driver.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

namespace fs = std::filesystem;

// The folders of HYBRIDNET_CUDA_PATH, and those of a virtual environment in the source folder.
std::string search_folders() {
  std::string folders = environment().cuda_path;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(HYBRIDNET_SOURCE_DIR) / ".venv/lib", ignored))
    folders += ":" + (entry.path() / "site-packages").string();
  return folders;
}

class CudaNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    compiler_ = Compiler::load(nvrtc_files("", search_folders(), 13000), &why);
    if (!compiler_) GTEST_SKIP() << why;
  }
  std::unique_ptr<Compiler> compiler_;
  const std::vector<device::HeaderText>& headers_ = device::kernel_headers();
  const std::string text_ = R"(#include "kernels/device/kernel.cuh"
struct Arguments { float* to; const float* from; int64_t n; };
HN_KERNEL(affine, Arguments) {
  for (int64_t i = hybridnet::device::first(); i < a.n; i += hybridnet::device::step()) a.to[i] = 3 * a.from[i] + 1;
})";
};

TEST_F(CudaNvrtc, CompilesATextWithHeadersForEachArchitecture) {
  for (const char* architecture : {"sm_80", "sm_90"}) {
    EXPECT_EQ(compiler_->target_for(architecture), architecture);
    const std::string image = compiler_->compile(text_, architecture, headers_);
    EXPECT_EQ(image.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_NE(image.find("affine"), std::string::npos);
  }
}

TEST_F(CudaNvrtc, LeavesTheConditionsOfGraphsToTheDriver) {
  std::string text = "#include \"kernels/device/loops.cuh\"\n";
  for (const char* type : {"float", "hybridnet::device::float16", "int64_t", "bool"}) {
    const std::string number = std::to_string(text.size());
    text += "HN_KERNEL(loop" + number + ", hybridnet::device::LoopDecision) { hybridnet::device::decide_loop<" + type +
            ">(a); }\nHN_KERNEL(branch" + number +
            ", hybridnet::device::BranchDecision) { hybridnet::device::decide_branch<" + type + ">(a); }\n";
  }
  for (const char* word : {"hybridnet::device::Word16", "uint32_t", "uint8_t"})
    text += "HN_KERNEL(move" + std::to_string(text.size()) +
            ", hybridnet::device::RowMoves) { hybridnet::device::move_rows<" + word + ">(a); }\n";
  text += "HN_KERNEL(clear, hybridnet::device::RowClears) { hybridnet::device::clear_rows<uint32_t>(a); }\n";
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const std::string image = compiler_->compile(text, architecture, headers_, device::ImageKind::kLinkedByDriver);
    EXPECT_NE(image.find(".extern .func cudaGraphSetConditional"), std::string::npos);
    EXPECT_NE(image.find(std::string(".target ") + architecture), std::string::npos);
  }
}

TEST_F(CudaNvrtc, CompilesATextOfAUserWithItsOptionsAndExports) {
  const device::UserSource source{.text = R"(#include <cmath>
#include <cstdint>
template <class T> __global__ void fill(T* to, T value) { to[threadIdx.x] = value * FACTOR; }
extern "C" __global__ void halve(const float* x, float* y, int64_t n) {
  extern __shared__ float part[];
  part[threadIdx.x] = std::exp(x[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x < n) y[threadIdx.x] = part[threadIdx.x] / 2;
})",
                                  .options = {"-DFACTOR=3"},
                                  .exports = {"fill<float>", "fill<int>"}};
  const device::UserImage image = compiler_->compile(source, "sm_90", headers_);
  ASSERT_EQ(image.symbols.size(), 2u);
  EXPECT_NE(image.symbols[0], image.symbols[1]);
  for (const std::string& symbol : {image.symbols[0], image.symbols[1], std::string("halve")})
    EXPECT_NE(image.image.find(symbol), std::string::npos) << symbol;
}

TEST_F(CudaNvrtc, ShowsTheLineOfAUsersTextThatDoesNotCompile) {
  try {
    compiler_->compile(device::UserSource{.text = "extern \"C\" __global__ void f(float* x) {\n  x[0] = missing;\n}"},
                       "sm_90", headers_);
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(error.fields().message.find("line 2: x[0] = missing;"), std::string::npos) << error.what();
    EXPECT_NE(error.fields().because.find("missing"), std::string::npos) << error.what();
  }
}

TEST_F(CudaNvrtc, GivesPtxOfTheNewestArchitectureThatItKnowsToANewerDevice) {
  const std::string target = compiler_->target_for("sm_999");
  EXPECT_EQ(target.substr(0, 8), "compute_");
  const std::string image = compiler_->compile(text_, target, headers_);
  EXPECT_NE(image.find(".entry affine"), std::string::npos);
  EXPECT_NE(image.find("mul."), std::string::npos) << "a product and a sum stay apart";
  EXPECT_EQ(image.find("fma"), std::string::npos);
  EXPECT_EQ(image.find("ftz"), std::string::npos) << "subnormal numbers stay";
}

TEST_F(CudaNvrtc, RefusesADeviceThatIsOlderThanAllThatItKnows) {
  try {
    compiler_->target_for("sm_20");
    FAIL();
  } catch (const EngineError& error) {
    EXPECT_NE(std::string(error.what()).find("sm_20"), std::string::npos);
    EXPECT_FALSE(error.fields().fix.empty());
  }
}

TEST_F(CudaNvrtc, ThrowsTheLogAndTheTextOfATextThatDoesNotCompile) {
  try {
    compiler_->compile("__global__ void broken() { missing_function(); }", "sm_80", headers_);
    FAIL();
  } catch (const EngineError& error) {
    EXPECT_NE(error.fields().message.find("missing_function"), std::string::npos) << error.what();
    EXPECT_NE(error.fields().message.find("sm_80"), std::string::npos);
    EXPECT_NE(error.fields().because.find("__global__ void broken"), std::string::npos);
  }
}

TEST_F(CudaNvrtc, ItsIdentityIsKnownBeforeItIsLoaded) {
  EXPECT_EQ(compiler_->identity(), expected_identity(nvrtc_files("", search_folders(), 13000)));
  EXPECT_TRUE(compiler_->identity().starts_with("libnvrtc.so.")) << compiler_->identity();
}

TEST_F(CudaNvrtc, ABackendKeepsImagesAndCompilesDamagedOnesAgain) {
  std::string folder = (fs::temp_directory_path() / "hybridnet-images-XXXXXX").string(), why;
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto make = [&](const std::string& library_folders) {
    return make_cuda_backend(scripted_driver(), {.library_folders = library_folders, .image_folder = folder}, &why);
  };
  const std::string image = make(search_folders())->compile(text_, "sm_80");
  EXPECT_EQ(image.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(make(search_folders())->compile(text_, "sm_80"), image);
  EXPECT_NE(make(search_folders())->compile(text_, "sm_90"), image);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++files;
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  }
  EXPECT_EQ(files, 2);
  EXPECT_EQ(make(search_folders())->compile(text_, "sm_80").size(), image.size());
  fs::remove_all(folder);
}

TEST(CudaNvrtcFiles, PrefersACompilerThatIsNotNewerThanTheDriver) {
  const auto place = [](const std::vector<std::string>& files, const std::string& end) {
    return std::find_if(files.begin(), files.end(), [&](const std::string& file) { return file.ends_with(end); }) -
           files.begin();
  };
  const auto old_driver = nvrtc_files("", "/cuda", 12040), new_driver = nvrtc_files("", "/cuda", 13000);
  EXPECT_LT(place(old_driver, "libnvrtc.so.12"), place(old_driver, "libnvrtc.so.13"));
  EXPECT_LT(place(new_driver, "libnvrtc.so.13"), place(new_driver, "libnvrtc.so.12"));
  EXPECT_EQ(new_driver.front(), "/cuda/libnvrtc.so.13") << "named folders come first";
  EXPECT_NE(std::find(new_driver.begin(), new_driver.end(), "/cuda/nvidia/cu13/lib/libnvrtc.so.13"), new_driver.end());
}

TEST(CudaNvrtcFiles, OfTheStandInDriverAreItsOwnLibraryOnly) {
  const auto files = nvrtc_files("stand-in", "/cuda", 12040);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].ends_with("libhnstandin.so"));
}

TEST(CudaNvrtcFiles, RelativeFoldersAreNotSearched) {
  for (const std::string& file : nvrtc_files("", "here:./there::", 13000)) {
    EXPECT_FALSE(file.starts_with("here") || file.starts_with("./")) << file;
  }
}

TEST(CudaNvrtcFiles, AReasonIsGivenIfNoneIsACompiler) {
  std::string why;
  EXPECT_EQ(Compiler::load({"/nonexistent/libnvrtc.so.13", "libm.so.6"}, &why), nullptr);
  EXPECT_NE(why.find("libm.so.6 lacks the function nvrtcVersion"), std::string::npos) << why;
}

}  // namespace
}  // namespace hybridnet::cuda
