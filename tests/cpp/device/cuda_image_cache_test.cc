#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cuda/image_cache.h"

namespace hybridnet::cuda {
namespace {

namespace fs = std::filesystem;

class CudaImageCache : public testing::Test {
 protected:
  CudaImageCache() : root_((fs::temp_directory_path() / "hybridnet-images-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~CudaImageCache() override {
    std::error_code ignored;
    fs::permissions(root_, fs::perms::owner_all, ignored);
    fs::remove_all(root_, ignored);
  }
  std::string folder() const { return root_ + "/a/b/cuda"; }
  fs::path only_file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder())) {
      EXPECT_TRUE(found.empty()) << "temporary files stay: " << entry.path();
      found = entry.path();
    }
    return found;
  }

  std::string root_;
  const std::string key_ = ImageCache::key({"text", "sm_90"});
  const std::string image_ = std::string(
                                 "\x7f"
                                 "ELF\0\n\0",
                                 7) +
                             std::string(10000, 'i');
};

TEST_F(CudaImageCache, ReturnsWhatWasWritten) {
  const ImageCache cache(folder());
  EXPECT_FALSE(cache.read(key_));
  cache.write(key_, image_);
  EXPECT_EQ(cache.read(key_), image_);
  EXPECT_EQ(ImageCache(folder()).read(key_), image_);
  EXPECT_FALSE(cache.read(ImageCache::key({"text", "sm_80"})));
  cache.write(key_, "other");
  EXPECT_EQ(cache.read(key_), "other");
  struct stat about {};
  ASSERT_EQ(stat(only_file().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(CudaImageCache, KeysDependOnEveryPartAndOnTheBordersBetweenThem) {
  EXPECT_EQ(ImageCache::key({"ab", "c"}), ImageCache::key({"ab", "c"}));
  EXPECT_NE(ImageCache::key({"ab", "c"}), ImageCache::key({"a", "bc"}));
  EXPECT_NE(ImageCache::key({"ab", "c"}), ImageCache::key({"ab", "c", ""}));
  EXPECT_NE(ImageCache::key({"ab", "c"}), ImageCache::key({"ab", "d"}));
}

TEST_F(CudaImageCache, IgnoresTruncatedAndChangedFiles) {
  const ImageCache cache(folder());
  cache.write(key_, image_);
  const fs::path file = only_file();
  const auto size = fs::file_size(file);
  for (const auto length : {size - 1, size / 2, uintmax_t{40}, uintmax_t{0}}) {
    fs::resize_file(file, length);
    EXPECT_FALSE(cache.read(key_)) << length;
  }
  cache.write(key_, image_);
  EXPECT_EQ(cache.read(key_), image_) << "a damaged file is replaced";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-5, std::ios::end).put('x');
  EXPECT_FALSE(cache.read(key_));
}

TEST_F(CudaImageCache, DoesNotTakeARenamedFileForAnotherImage) {
  const ImageCache cache(folder());
  cache.write(key_, image_);
  const std::string other = ImageCache::key({"other"});
  fs::rename(only_file(), folder() + "/" + other + ".image");
  EXPECT_FALSE(cache.read(other));
}

TEST_F(CudaImageCache, IgnoresFilesAndFoldersThatOthersMayWrite) {
  const ImageCache cache(folder());
  cache.write(key_, image_);
  fs::permissions(only_file(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.read(key_));
  cache.write(key_, image_);
  EXPECT_TRUE(cache.read(key_)) << "the new file has the right permissions";
  fs::permissions(folder(), fs::perms::others_write, fs::perm_options::add);
  const std::string other = ImageCache::key({"other"});
  cache.write(other, image_);
  EXPECT_FALSE(cache.read(other));
}

TEST_F(CudaImageCache, KeepsNothingWithoutAUsableFolder) {
  for (const std::string& folder : {std::string(), std::string("relative/cuda"), std::string("/dev/null/cuda"),
                                    std::string("/proc/hybridnet/cuda")}) {
    const ImageCache cache(folder);
    cache.write(key_, image_);
    EXPECT_FALSE(cache.read(key_)) << folder;
  }
  EXPECT_FALSE(fs::exists("relative"));
  std::ofstream(root_ + "/file") << "no folder";
  const ImageCache cache(root_ + "/file");
  cache.write(key_, image_);
  EXPECT_FALSE(cache.read(key_));
}

}  // namespace
}  // namespace hybridnet::cuda
