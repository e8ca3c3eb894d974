#pragma once

// The version of the library, for the preprocessor. CMakeLists.txt reads it from here.

#define TOMBOLO_VERSION_MAJOR 0
#define TOMBOLO_VERSION_MINOR 1
#define TOMBOLO_VERSION_PATCH 0
#define TOMBOLO_VERSION "0.1.0"
