// Runs a model the way a server would: one session, four threads, outputs in memory of the
// program's own, a run that another thread stops.
//   run_model_cpp model.onnx 1 8 8 1
// The numbers are the shape of the model's first input.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <tombolo/tombolo.hpp>

int main(int argc, char** argv) {
  if (argc < 2) return TOMBOLO_USAGE;
  try {
    const tombolo::Session session(argv[1]);
    std::vector<int64_t> dims;
    size_t count = 1;
    for (int i = 2; i < argc; ++i) {
      dims.push_back(std::atoll(argv[i]));
      count *= static_cast<size_t>(dims.back());
    }
    const std::vector<float> zeros(count);
    const auto input = tombolo::tensor(session.input_name(0), zeros, dims);
    std::printf("input %s: %s\n", session.input_name(0).c_str(), session.input_type(0).c_str());

    // The first run tells the shape of the first output; the others write to memory of ours.
    const tombolo::Outputs first = session.run({input});
    const auto shape = first[0].dims();
    std::vector<std::thread> threads;
    std::vector<std::vector<float>> results(4, std::vector<float>(first[0].size<float>()));
    for (auto& result : results)
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i)
          session.run({input}, {tombolo::tensor(session.output_name(0), result, shape)});
      });
    for (auto& thread : threads) thread.join();
    std::printf("output %s:", first[0].name());
    for (size_t i = 0; i < results[0].size() && i < 10; ++i) std::printf(" %g", results[0][i]);
    std::printf("\n");
    for (const auto& result : results)
      if (std::memcmp(result.data(), first[0].raw(), first[0].bytes()) != 0) return 1;

    tombolo::Stop stop;
    stop.request();
    tombolo::RunOptions options;
    options.stop = &stop;
    try {
      session.run({input}, {}, options);
      return 1;
    } catch (const tombolo::Failure& failure) {
      std::printf("stopped: %s\n", failure.what());
    }
  } catch (const tombolo::Failure& failure) {
    std::fprintf(stderr, "%s\n  where: %s\n  help: %s\n", failure.what(), failure.where().c_str(),
                 failure.help().c_str());
    return failure.status();
  }
  return 0;
}
