# What the product links. Header-only: protozero, CLI11, {fmt}, nlohmann-json, RapidJSON.
# Static archives: HDF5 (with aec and zlib), libpng, libjpeg-turbo. Nothing else may be added
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

find_library(HDF5_STATIC NAMES libhdf5_serial.a libhdf5.a
             HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
find_path(HDF5_INCLUDE NAMES hdf5.h HINTS /usr/include/hdf5/serial REQUIRED)
find_library(SZ_STATIC NAMES libsz.a)
find_library(AEC_STATIC NAMES libaec.a)
add_library(tombolo_hdf5 INTERFACE)
target_include_directories(tombolo_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE})
target_link_libraries(tombolo_hdf5 INTERFACE ${HDF5_STATIC})
foreach(extra SZ_STATIC AEC_STATIC)
  if(${extra})
    target_link_libraries(tombolo_hdf5 INTERFACE ${${extra}})
  endif()
endforeach()
target_link_libraries(tombolo_hdf5 INTERFACE tombolo_zlib Threads::Threads ${CMAKE_DL_LIBS} m)
