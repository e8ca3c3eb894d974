// Every model of the official conformance suite survives its own text. The suite is not in the
// repository: TOMBOLO_CONFORMANCE names the unpacked folder; without it this is skipped.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "onnx/reader.h"

namespace tombolo {
namespace {

TEST(TextConformance, ParsedTextIsTheModel) {
  const char* folder = std::getenv("TOMBOLO_CONFORMANCE");
  if (folder == nullptr)
    GTEST_SKIP() << "set TOMBOLO_CONFORMANCE to the unpacked conformance suite";
  size_t models = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".onnx") continue;
    const std::string path = entry.path().string();
    auto model = load_onnx(path);
    ASSERT_TRUE(model.ok()) << path << ": " << model.error().message;
    // Decimal digits for all but the largest weights: those as hex, to keep the test short.
    const PrintOptions options{.hex_above = 1 << 20};
    const std::string text = print_text(**model, options);
    auto again = parse_text(text);
    ASSERT_TRUE(again.ok()) << path << ": " << again.error().where << ": " << again.error().message
                            << "\n"
                            << again.error().help;
    (*again)->storage().set_folder((*model)->storage().folder());
    std::string difference;
    EXPECT_TRUE(equal(**model, **again, &difference)) << path << ": " << difference;
    EXPECT_TRUE(print_text(**again, options) == text) << path << ": the text changes";
    ++models;
  }
  EXPECT_GT(models, 0u) << folder << " holds no models";
  std::printf("%zu models are equal through text\n", models);
}

}  // namespace
}  // namespace tombolo
