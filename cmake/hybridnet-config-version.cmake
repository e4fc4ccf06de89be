# Reports to find_package(hybridnet <version>) if this version is compatible; the version itself is in libinfo.py.
foreach(_hybridnet_folder IN ITEMS "${CMAKE_CURRENT_LIST_DIR}/.." "${CMAKE_CURRENT_LIST_DIR}/../python/hybridnet")
  if(EXISTS "${_hybridnet_folder}/libinfo.py")
    file(STRINGS "${_hybridnet_folder}/libinfo.py" PACKAGE_VERSION REGEX "^__version__ = ")
    string(REGEX REPLACE "^.*\"([^\"]+)\".*$" "\\1" PACKAGE_VERSION "${PACKAGE_VERSION}")
    break()
  endif()
endforeach()

# Before 1.0 a minor version may break compatibility; from 1.0 on only a major version does.
string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)" _hybridnet_series "${PACKAGE_VERSION}")
string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*|0$)" _hybridnet_wanted "${PACKAGE_FIND_VERSION}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION
   OR NOT (_hybridnet_wanted STREQUAL "0" OR _hybridnet_wanted STREQUAL _hybridnet_series))
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
