#ifndef TOMBOLO_TOMBOLO_H_
#define TOMBOLO_TOMBOLO_H_

/* The C interface of Tombolo. Not frozen before version 1.0; what is here will keep working.
 *
 * Every function that can fail returns a status, 0 for success, and fills *error (if error is not
 * null) with an object that the caller destroys. Strings are UTF-8 and end with a zero byte; what a
 * getter returns lives as long as the object it was asked of. Nothing prints, exits or throws.
 * Functions may be called from any thread; one session may run on many threads at a time. */

#include <stddef.h>
#include <stdint.h>

#include "tombolo/version.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TOMBOLO_API __attribute__((visibility("default")))

/* The values are the exit codes of the command line. */
typedef enum tombolo_status {
  TOMBOLO_OK = 0,
  TOMBOLO_NO = 1,          /* the answer is no: an invalid model */
  TOMBOLO_USAGE = 2,       /* the request itself is wrong */
  TOMBOLO_PARSE = 3,       /* cannot be read */
  TOMBOLO_UNSUPPORTED = 4, /* operator, type, version or feature */
  TOMBOLO_RUNTIME = 5,     /* failed while running */
  TOMBOLO_RESOURCE = 6     /* memory, disk, time limit */
} tombolo_status;

typedef struct tombolo_error tombolo_error;
TOMBOLO_API const char* tombolo_error_message(const tombolo_error* error);
TOMBOLO_API const char* tombolo_error_where(const tombolo_error* error); /* "" when unknown */
TOMBOLO_API const char* tombolo_error_help(const tombolo_error* error);  /* the way out, or "" */
TOMBOLO_API void tombolo_error_destroy(tombolo_error* error);            /* null is fine */

/* "0.1.0" */
TOMBOLO_API const char* tombolo_version(void);

/* Converts a model of any readable format; the format of `output` follows from its extension. */
TOMBOLO_API tombolo_status tombolo_convert(const char* input, const char* output,
                                           tombolo_error** error);

/* Called for each finding of tombolo_check. severity: 0 note, 1 warning, 2 error. */
typedef void (*tombolo_diagnostic_fn)(void* user, int severity, const char* code, const char* where,
                                      const char* message, const char* help);
/* TOMBOLO_OK for a valid model, TOMBOLO_NO for an invalid one. */
TOMBOLO_API tombolo_status tombolo_check(const char* path, tombolo_diagnostic_fn report, void* user,
                                         tombolo_error** error);

/* A dense tensor. dtype is ONNX's TensorProto.DataType (1 float, 7 int64, ...). data are row-major,
 * little-endian, packed as in raw_data; for strings (8) an array of `const char*`. */
typedef struct tombolo_tensor {
  size_t struct_size; /* sizeof(tombolo_tensor) of the caller */
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
  const void* data;
  size_t bytes;
} tombolo_tensor;

typedef struct tombolo_session tombolo_session;
typedef struct tombolo_outputs tombolo_outputs;

/* Opens a model of any readable format, ready to run. */
TOMBOLO_API tombolo_status tombolo_session_create(const char* path, tombolo_session** session,
                                                  tombolo_error** error);
TOMBOLO_API void tombolo_session_destroy(tombolo_session* session);
TOMBOLO_API size_t tombolo_session_input_count(const tombolo_session* session);
TOMBOLO_API size_t tombolo_session_output_count(const tombolo_session* session);
TOMBOLO_API const char* tombolo_session_input_name(const tombolo_session* session, size_t index);
TOMBOLO_API const char* tombolo_session_output_name(const tombolo_session* session, size_t index);
/* The declared type as text, "float[N,3,224,224]"; "" when the model declares none. */
TOMBOLO_API const char* tombolo_session_input_type(const tombolo_session* session, size_t index);
TOMBOLO_API const char* tombolo_session_output_type(const tombolo_session* session, size_t index);

/* Runs once. Inputs are found by name; their data need to live only during the call. */
TOMBOLO_API tombolo_status tombolo_session_run(const tombolo_session* session,
                                               const tombolo_tensor* inputs, size_t input_count,
                                               tombolo_outputs** outputs, tombolo_error** error);
/* Output tensors in graph order; sequences are flattened to NAME.0, NAME.1, ... */
TOMBOLO_API size_t tombolo_outputs_count(const tombolo_outputs* outputs);
/* Fills *tensor (struct_size set by the caller); its pointers live as long as `outputs`. */
TOMBOLO_API tombolo_status tombolo_outputs_get(const tombolo_outputs* outputs, size_t index,
                                               tombolo_tensor* tensor);
TOMBOLO_API void tombolo_outputs_destroy(tombolo_outputs* outputs);

#ifdef __cplusplus
}
#endif
#endif
