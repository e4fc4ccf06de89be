#include "cuda/image_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/cache_folder.h"
#include "base/replace_file.h"
#include "hybridnet/env.h"

namespace hybridnet::cuda {
namespace {

constexpr std::string_view kFormat = "hybridnet cuda image 1";

// The first bytes of a file. The key is part of it, so that a renamed file is not taken for another image.
std::string heading(const std::string& key, std::string_view image) {
  return std::string(kFormat) + "\n" + key + "\n" + TextHash().add(image).str() + "\n";
}

}  // namespace

std::string ImageCache::key(std::initializer_list<std::string_view> parts) {
  TextHash hash;
  hash.add(kFormat);
  for (const std::string_view part : parts) hash.add(std::to_string(part.size())).add(":").add(part);
  return hash.str();
}

std::optional<std::string> ImageCache::read(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::optional<std::string> content = read_own_file(file_of(key));
  const size_t length = heading(key, {}).size();
  if (!content || content->size() <= length) return std::nullopt;
  const std::string_view image = std::string_view(*content).substr(length);
  if (content->compare(0, length, heading(key, image)) != 0) return std::nullopt;
  content->erase(0, length);
  return content;
}

void ImageCache::write(const std::string& key, std::string_view image) const noexcept {
  try {
    if (folder_.empty() || image.empty() || !make_own_folder(folder_)) return;
    const std::string head = heading(key, image);
    // The new file must have neither the permissions of an old one, which others may write, nor be written through it
    // if it is a pipe or a link.
    unlink(file_of(key).c_str());
    replace_file(file_of(key), [&](std::FILE* file) {  // whatever the umask is, only the user may write the file
      return fchmod(fileno(file), S_IRUSR | S_IWUSR) == 0 &&
             std::fwrite(head.data(), 1, head.size(), file) == head.size() &&
             std::fwrite(image.data(), 1, image.size(), file) == image.size();
    });
  } catch (...) {  // a full disk, or a folder that vanished: the next process compiles again
  }
}

std::string image_folder() {
  const std::string& cache = environment().cache;
  return cache.empty() ? std::string() : cache + "/cuda";
}

}  // namespace hybridnet::cuda
