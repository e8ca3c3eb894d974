/* Runs a model on zeros: the C interface in one page.
 *   cc run_model.c $(pkg-config --cflags --libs tombolo) -o run_model && ./run_model model.onnx 1 8 8 1
 * The numbers are the shape of the model's first input. */
#include <stdio.h>
#include <stdlib.h>
#include <tombolo/tombolo.h>

static int fail(tombolo_status status, tombolo_error* error) {
  fprintf(stderr, "%s\n  where: %s\n  help: %s\n", tombolo_error_message(error), tombolo_error_where(error),
          tombolo_error_help(error));
  tombolo_error_destroy(error);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 2) return TOMBOLO_USAGE;
  tombolo_error* error = NULL;
  tombolo_session* session = NULL;
  tombolo_status status = tombolo_session_create(argv[1], &session, &error);
  if (status != TOMBOLO_OK) return fail(status, error);
  printf("tombolo %s; input %s: %s\n", tombolo_version(), tombolo_session_input_name(session, 0),
         tombolo_session_input_type(session, 0));

  int64_t dims[8];
  size_t count = 1;
  int rank = argc - 2 < 8 ? argc - 2 : 8;
  for (int i = 0; i < rank; ++i) {
    dims[i] = atoll(argv[i + 2]);
    count *= (size_t)dims[i];
  }
  float* zeros = calloc(count, sizeof(float));
  tombolo_tensor input = {sizeof input, tombolo_session_input_name(session, 0), 1, rank, dims, zeros,
                          count * sizeof(float)};
  tombolo_outputs* outputs = NULL;
  status = tombolo_session_run(session, &input, 1, &outputs, &error);
  free(zeros);
  if (status != TOMBOLO_OK) {
    tombolo_session_destroy(session);
    return fail(status, error);
  }
  for (size_t i = 0; i < tombolo_outputs_count(outputs); ++i) {
    tombolo_tensor output = {.struct_size = sizeof output};
    tombolo_outputs_get(outputs, i, &output);
    printf("output %s:", output.name);
    for (size_t k = 0; output.dtype == 1 && k < output.bytes / sizeof(float) && k < 10; ++k)
      printf(" %g", ((const float*)output.data)[k]);
    printf("\n");
  }
  tombolo_outputs_destroy(outputs);
  tombolo_session_destroy(session);
  return 0;
}
