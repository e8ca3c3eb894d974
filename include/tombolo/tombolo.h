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

/* Structs begin with their size, as the caller's compiler knows it: a newer library reads the
 * members that are there, an older one ignores those that it does not know when they are 0. Set
 * everything to 0 first: `tombolo_session_options o = {sizeof o};`. */
typedef struct tombolo_session_options {
  size_t struct_size;
  uint64_t
      memory_limit; /* bytes of tensors alive in the process; 0: what the machine has to give */
  uint64_t time_limit_ms; /* of one run; 0: none */
  uint64_t seed;          /* of the random operators */
  int32_t deterministic;  /* not 0: the same bits whatever the number of threads */
  int32_t fast_math;      /* not 0: products of 8 or 16 bits may stand for those of 32 */
  int32_t reference;      /* not 0: the plain kernels that define what is right, slowly */
  int32_t optimise;       /* rewrites of the graph: 0 as is best, 1 none, 2 to 4: levels 1 to 3 */
  const char* pack_cache; /* a folder where weights in the layouts of kernels are kept for sessions
                             to come, which then start sooner; null: none */
} tombolo_session_options;

/* As tombolo_session_create, with options (null: all 0). */
TOMBOLO_API tombolo_status tombolo_session_open(const char* path,
                                                const tombolo_session_options* options,
                                                tombolo_session** session, tombolo_error** error);
/* From the bytes of an .onnx file (or another format that is one file). They are copied: they need
 * to live only during the call. A file is mapped instead and takes less memory. */
TOMBOLO_API tombolo_status tombolo_session_open_memory(const void* bytes, size_t size,
                                                       const tombolo_session_options* options,
                                                       tombolo_session** session,
                                                       tombolo_error** error);
/* Threads of the process that kernels use, the caller's included; 0: the cores allowed. */
TOMBOLO_API void tombolo_set_threads(int32_t count);

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
/* Lets one thread end the runs of others. */
typedef struct tombolo_stop tombolo_stop;
TOMBOLO_API tombolo_stop* tombolo_stop_create(void); /* null when memory is out */
TOMBOLO_API void tombolo_stop_request(tombolo_stop* stop);
TOMBOLO_API void tombolo_stop_clear(tombolo_stop* stop); /* for the next run */
TOMBOLO_API void tombolo_stop_destroy(tombolo_stop* stop);

/* Memory of the caller's for an output to be written to: no copy is made where the shape is known.
 * With rank -1 any shape that fits in `bytes` will do. */
typedef struct tombolo_binding {
  size_t struct_size;
  const char* name; /* of the output */
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
  void* data; /* aligned for the type */
  size_t bytes;
} tombolo_binding;

typedef struct tombolo_run_options {
  size_t struct_size;
  const tombolo_stop* stop; /* null: nobody ends the run */
  uint64_t time_limit_ms;   /* 0: the session's */
  uint64_t memory_limit;    /* 0: the session's */
} tombolo_run_options;

/* Runs once, without copies: inputs are read where they lie, bound outputs written where the caller
 * wants them (it is an error when such an output comes out with another type or shape; other
 * outputs are allocated). `options` and `bindings` may be null. */
TOMBOLO_API tombolo_status tombolo_session_run_bound(
    const tombolo_session* session, const tombolo_tensor* inputs, size_t input_count,
    const tombolo_binding* bindings, size_t binding_count, const tombolo_run_options* options,
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
