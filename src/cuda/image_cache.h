// Compiled kernels on disk, so that a later process need not compile them: a file for each image in a folder that only
// the user may write. A file that is damaged, or that others may write, is ignored and replaced.
// Threads: any, in several processes at once: files are replaced whole.
// Throws:  nothing. Without a usable folder nothing is kept.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace hybridnet::cuda {

class ImageCache {
 public:
  // folder: absolute; empty: nothing is kept. It is made when the first image is written.
  explicit ImageCache(std::string folder) : folder_(std::move(folder)) {}

  // The name of an image: a hash of all that decides its content. The borders between the parts count.
  static std::string key(std::initializer_list<std::string_view> parts);

  std::optional<std::string> read(const std::string& key) const;
  void write(const std::string& key, std::string_view image) const noexcept;

 private:
  std::string file_of(const std::string& key) const { return folder_ + "/" + key + ".image"; }

  const std::string folder_;
};

// The folder for the images of this process: `cuda` in HYBRIDNET_CACHE; empty if there is none.
std::string image_folder();

}  // namespace hybridnet::cuda
