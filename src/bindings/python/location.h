// The user's file:line that the current thread is executing for.
#pragma once

#include <string>

#include "hybridnet/error.h"

namespace hybridnet::python {

// The innermost Python frame whose file lies outside `package_folder`; unknown without the GIL or without such a frame.
SourceLocation python_location();

// Python's UserWarning about the line of python_location(), once for each line. Throws what a filter makes of it.
void warn_at_location(const std::string& text);

// Frames of files below this folder are skipped. Installs python_location() as the library's location probe.
void install_location_probe(const std::string& package_folder);

}  // namespace hybridnet::python
