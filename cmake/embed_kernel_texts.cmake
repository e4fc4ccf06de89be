# cmake -DSOURCE=src -DHWY=/usr/include -DOUTPUT=file.cc -P embed_kernel_texts.cmake: writes device::kernel_headers()
# (src/device/backend.h): the headers that texts of kernels may include, under the names by which they include them.
# To add a header, only add the file.
cmake_minimum_required(VERSION 3.22)

file(GLOB headers RELATIVE "${SOURCE}"
  "${SOURCE}/kernels/device/*.cuh" "${SOURCE}/kernels/device/*.h" "${SOURCE}/kernels/functors/*.h")
list(APPEND headers kernels/elementwise/vector_math.h kernels/norm/exp_to_one.h kernels/random/rng.h)
list(SORT headers)
# Names of other libraries' headers, and the files that stand for them in kernels.
set(stand_ins "hwy/highway.h=kernels/device/one_lane.h" "hybridnet/kernel.h=kernels/device/random_key.h")
foreach(name IN ITEMS algorithm cmath cstddef cstdint cstring limits type_traits utility)
  list(APPEND stand_ins "${name}=kernels/device/standard.h")
endforeach()

# Sets `result` to an expression for the text of a file. Compilers limit the length of one literal; adjacent ones are
# concatenated.
function(text_literal file result)
  file(READ "${file}" text)
  string(FIND "${text}" ")hn\"" clash)
  if(clash GREATER -1)
    message(FATAL_ERROR "hybridnet: ${file} contains )hn\", which ends the literal that it is embedded in.\n"
      "Fix: write it in another way.")
  endif()
  set(literal "")
  string(LENGTH "${text}" length)
  while(length GREATER 0)
    string(SUBSTRING "${text}" 0 15000 piece)
    string(FIND "${piece}" "\n" end REVERSE)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${text}" 0 ${end} piece)
    string(SUBSTRING "${text}" ${end} -1 text)
    string(APPEND literal "\n    R\"hn(${piece})hn\"")
    string(LENGTH "${text}" length)
  endwhile()
  set(${result} "${literal}" PARENT_SCOPE)
endfunction()

# A header's text is a variable named after its path, so that two names can share it.
set(texts "")
set(rows "")
foreach(name IN LISTS headers ITEMS hwy/contrib/math/math-inl.h)
  if(EXISTS "${SOURCE}/${name}")
    text_literal("${SOURCE}/${name}" literal)
  else()
    text_literal("${HWY}/${name}" literal)
  endif()
  string(MAKE_C_IDENTIFIER "${name}" variable)
  string(APPEND texts "constexpr std::string_view ${variable} =${literal};\n\n")
  string(APPEND rows "      {\"${name}\", ${variable}},\n")
endforeach()
foreach(pair IN LISTS stand_ins)
  string(REGEX MATCH "^(.*)=(.*)$" pair "${pair}")
  set(name "${CMAKE_MATCH_1}")
  string(MAKE_C_IDENTIFIER "${CMAKE_MATCH_2}" variable)
  string(APPEND rows "      {\"${name}\", ${variable}},\n")
endforeach()

set(result "// Written by cmake/embed_kernel_texts.cmake.
#include \"device/backend.h\"

namespace hybridnet::device {
namespace {

${texts}}  // namespace

const std::vector<HeaderText>& kernel_headers() {
  static const std::vector<HeaderText> headers = {
${rows}  };
  return headers;
}

}  // namespace hybridnet::device
")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT result STREQUAL before)
  file(WRITE "${OUTPUT}" "${result}")
endif()
