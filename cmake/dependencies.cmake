# What the product links. Header-only: protozero, CLI11, {fmt}, nlohmann-json, RapidJSON.
# Static archives: zlib, libpng, libjpeg-turbo. (HDF5 is read by our own
# formats/common/hdf5_file.) Nothing else may be added
# here without a line in docs/decisions.md.
find_package(Threads REQUIRED)

add_library(tombolo_headers INTERFACE)
target_compile_definitions(tombolo_headers INTERFACE FMT_HEADER_ONLY=1)


add_library(tombolo_zlib INTERFACE)
find_library(ZLIB_STATIC NAMES libz.a REQUIRED)
target_link_libraries(tombolo_zlib INTERFACE ${ZLIB_STATIC})

add_library(tombolo_png INTERFACE)
find_library(PNG_STATIC NAMES libpng.a libpng16.a REQUIRED)
target_link_libraries(tombolo_png INTERFACE ${PNG_STATIC} tombolo_zlib)

add_library(tombolo_jpeg INTERFACE)
find_library(JPEG_STATIC NAMES libjpeg.a REQUIRED)
target_link_libraries(tombolo_jpeg INTERFACE ${JPEG_STATIC})

add_library(tombolo_re2 INTERFACE)
find_library(RE2_STATIC NAMES libre2.a REQUIRED)
target_link_libraries(tombolo_re2 INTERFACE ${RE2_STATIC} Threads::Threads)
