# CMake package of HybridNet:
#   find_package(hybridnet REQUIRED)
#   target_link_libraries(my_program PRIVATE hybridnet::hybridnet)
# Found with -Dhybridnet_DIR="$(python -m hybridnet.libinfo --cmakedir)". Works from an installed Python package, from
# `cmake --install`, and from a source tree that was built.
if(TARGET hybridnet::hybridnet)
  return()
endif()

get_filename_component(_hybridnet_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
unset(_hybridnet_library)
foreach(_hybridnet_folder IN ITEMS "${_hybridnet_root}" "${_hybridnet_root}/python/hybridnet")
  if(EXISTS "${_hybridnet_folder}/libhybridnet.so")
    set(_hybridnet_library "${_hybridnet_folder}/libhybridnet.so")
    break()
  endif()
endforeach()

if(NOT _hybridnet_library OR NOT EXISTS "${_hybridnet_root}/include/hybridnet/c_api.h")
  set(hybridnet_FOUND FALSE)
  set(hybridnet_NOT_FOUND_MESSAGE
      "expected libhybridnet.so in ${_hybridnet_root} (or its python/hybridnet) and headers in ${_hybridnet_root}/include. "
      "Fix: build the source tree (tools/dev build) or reinstall the package (pip install hybridnet).")
  return()
endif()

add_library(hybridnet::hybridnet SHARED IMPORTED)
get_filename_component(_hybridnet_library_folder "${_hybridnet_library}" DIRECTORY)
find_package(Threads REQUIRED)
set_target_properties(hybridnet::hybridnet PROPERTIES
  IMPORTED_LOCATION "${_hybridnet_library}"
  INTERFACE_INCLUDE_DIRECTORIES "${_hybridnet_root}/include"
  INTERFACE_COMPILE_FEATURES cxx_std_20
  INTERFACE_LINK_LIBRARIES Threads::Threads
  # The dependencies of libhybridnet.so are in its folder, where it finds them by $ORIGIN; the linker needs this path.
  INTERFACE_LINK_OPTIONS "LINKER:-rpath-link,${_hybridnet_library_folder}")
set(hybridnet_LIBRARY "${_hybridnet_library}")
set(hybridnet_INCLUDE_DIR "${_hybridnet_root}/include")
set(hybridnet_FOUND TRUE)
