# What the product links. Header-only: CLI11, RapidJSON. Static archives: zlib, libpng, libjpeg-turbo, RE2.
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

add_library(tombolo_re2 INTERFACE)
find_library(RE2_STATIC NAMES libre2.a REQUIRED)
target_link_libraries(tombolo_re2 INTERFACE ${RE2_STATIC} Threads::Threads)
