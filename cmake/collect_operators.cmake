# cmake -DFOLDER=src/ops -DOUTPUT=file.cc -P collect_operators.cmake: writes ops::register_all, which calls the
# register_<name>(OpRegistry&) functions of every <family>/*.cc. To add an operator, only add a file.
cmake_minimum_required(VERSION 3.22)
file(GLOB sources "${FOLDER}/*/*.cc")
list(SORT sources)
set(declarations "")
set(calls "")
set(seen "")
foreach(source IN LISTS sources)
  file(READ "${source}" code)
  string(FIND "${code}" "\n}  // namespace\n" hidden REVERSE)  # functions in unnamed namespaces are private to the file
  if(hidden GREATER -1)
    string(SUBSTRING "${code}" ${hidden} -1 public)
  else()
    set(public "${code}")
  endif()
  string(REGEX MATCHALL "\nvoid register_[a-z0-9_]+\\(OpRegistry& ops\\) *{" functions "${public}")
  if(NOT functions AND code MATCHES "ops\\.declare[<(]")
    message(FATAL_ERROR "hybridnet: ${source} declares operators, but no function registers them.\n"
      "Fix: define `void register_<name>(OpRegistry& ops) {` after the unnamed namespace.")
  endif()
  foreach(function IN LISTS functions)
    string(REGEX MATCH "register_[a-z0-9_]+" name "${function}")
    if(name IN_LIST seen)
      message(FATAL_ERROR "hybridnet: ${name} is defined twice, again in ${source}.\nFix: rename one of them.")
    endif()
    list(APPEND seen "${name}")
    string(APPEND declarations "void ${name}(OpRegistry& ops);\n")
    string(APPEND calls "  ${name}(ops);\n")
  endforeach()
endforeach()
set(text "// Written by cmake/collect_operators.cmake.
#include \"ops/register_all.h\"

namespace hybridnet::ops {

${declarations}
void register_all(OpRegistry& ops) {
${calls}}

}  // namespace hybridnet::ops
")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
