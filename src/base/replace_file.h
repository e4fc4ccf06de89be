// Writes a file whole or not at all.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace hybridnet {

// write(file) writes a new file beside the target, which is synced to the disk and renamed at the end, so that a
// failure in the middle, even of the machine, leaves the old file as it was. The new file has the permissions of the
// old one, a link stays a link, and devices and pipes are written directly. write returns false, with errno, if it
// failed. Throws FileError.
void replace_file(const std::string& path, const std::function<bool(std::FILE*)>& write);

// Throws FileError "cannot <doing> the file" with the reason in errno.
[[noreturn]] void throw_file_error(const std::string& path, const char* doing, const char* fix);

}  // namespace hybridnet
