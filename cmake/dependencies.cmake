# What the product links. Header-only: CLI11, RapidJSON, Highway (runtime dispatch is our own, so that
# its library is not needed). Static archives: zlib, libpng, libjpeg-turbo, RE2, libwebp, libtiff (with zstd, lzma and
# deflate, which it decompresses with), OpenJPEG.
# Nothing else may be added here without a line in docs/decisions.md.
find_package(Threads REQUIRED)

add_library(tombolo_zlib INTERFACE)
find_library(ZLIB_STATIC NAMES libz.a REQUIRED)
target_link_libraries(tombolo_zlib INTERFACE ${ZLIB_STATIC})

add_library(tombolo_png INTERFACE)
find_library(PNG_STATIC NAMES libpng.a libpng16.a REQUIRED)
target_link_libraries(tombolo_png INTERFACE ${PNG_STATIC} tombolo_zlib)

add_library(tombolo_jpeg INTERFACE)
find_library(JPEG_STATIC NAMES libjpeg.a REQUIRED)
target_link_libraries(tombolo_jpeg INTERFACE ${JPEG_STATIC})

# What ImageDecoder reads beside PNG and JPEG. JBIG and LERC are left out: base/image_tiff.cpp.
add_library(tombolo_images INTERFACE)
foreach(archive tiff webp openjp2 zstd lzma deflate)
  find_library(${archive}_STATIC NAMES lib${archive}.a REQUIRED)
  target_link_libraries(tombolo_images INTERFACE ${${archive}_STATIC})
endforeach()
# libwebp since 1.3 keeps a part of itself, which libtiff's WebP codec reaches, in an archive of its own.
find_library(sharpyuv_STATIC NAMES libsharpyuv.a)
if(sharpyuv_STATIC)
  target_link_libraries(tombolo_images INTERFACE ${sharpyuv_STATIC})
endif()
target_link_libraries(tombolo_images INTERFACE tombolo_jpeg tombolo_zlib)
find_path(OPENJPEG_INCLUDE openjpeg.h PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4 REQUIRED)
target_include_directories(tombolo_images SYSTEM INTERFACE ${OPENJPEG_INCLUDE})

add_library(tombolo_re2 INTERFACE)
find_library(RE2_STATIC NAMES libre2.a REQUIRED)
target_link_libraries(tombolo_re2 INTERFACE ${RE2_STATIC} Threads::Threads)
# RE2 since 2023-06 stands on Abseil: its archives in the order in which they need each other.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(RE2_PC QUIET re2)
  foreach(library ${RE2_PC_STATIC_LIBRARIES})
    if(library MATCHES "^absl_")
      find_library(${library}_STATIC NAMES lib${library}.a REQUIRED)
      target_link_libraries(tombolo_re2 INTERFACE ${${library}_STATIC})
    endif()
  endforeach()
endif()

find_path(HIGHWAY_HEADERS hwy/highway.h REQUIRED)
find_path(XXHASH_HEADERS xxhash.h REQUIRED)
