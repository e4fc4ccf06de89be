// The user's file:line that caused the current call.
#pragma once

#include <string>

#include "hybridnet/error.h"

namespace hybridnet::python {

// Returns the line of the innermost Python frame whose file is outside `package_folder`; unknown without the GIL or
// without such a frame.
SourceLocation python_location();

// Issues Python's UserWarning for the line of python_location(), once for each line. Throws if a filter makes it an
// error.
void warn_at_location(const std::string& text);

// Frames of files below this folder are skipped. Installs python_location() as the library's location probe.
void install_location_probe(const std::string& package_folder);

}  // namespace hybridnet::python
