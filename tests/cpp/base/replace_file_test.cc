#include "base/replace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string name = (fs::temp_directory_path() / "replace_file_XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~ReplaceFile() override { fs::remove_all(folder); }

  static void write(const fs::path& path, const std::string& text) {
    replace_file(path.string(),
                 [&](std::FILE* file) { return std::fwrite(text.data(), 1, text.size(), file) == text.size(); });
  }
  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {})); }

  fs::path folder;
};

TEST_F(ReplaceFile, KeepsThePermissionsOfTheOldFile) {
  write(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms(0640));
  write(folder / "file", "new");
  EXPECT_EQ(content(folder / "file"), "new");
  EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms(0640));
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReplaceFile, ALinkStaysALink) {
  write(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  write(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(content(folder / "real"), "new");
}

// The rule that protects devices in /dev, which a process of root could replace by a file.
TEST_F(ReplaceFile, APipeStaysAPipe) {
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write(pipe, "text");
  char got[8] = {};
  EXPECT_EQ(read(reader, got, sizeof(got)), 4);
  EXPECT_STREQ(got, "text");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReplaceFile, AFailureLeavesTheOldFileAlone) {
  write(folder / "file", "old");
  EXPECT_THROW(replace_file((folder / "file").string(),
                            [](std::FILE* file) {
                              std::fputs("half", file);
                              errno = ENOSPC;
                              return false;
                            }),
               FileError);
  EXPECT_THROW(
      replace_file((folder / "file").string(), [](std::FILE*) -> bool { throw ValueError({.message = "no"}); }),
      ValueError);
  EXPECT_EQ(content(folder / "file"), "old");
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(write(folder, "text"), FileError);
  EXPECT_THROW(write(folder / "none" / "file", "text"), FileError);
}

}  // namespace
}  // namespace hybridnet
