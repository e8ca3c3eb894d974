// Any text either gives an error or a model whose text reads back as an equal model.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/text/parser.h"
#include "ir/text/printer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tombolo;
  const ParseOptions options{.memory_limit = size_t(64) << 20};
  auto model = parse_text({reinterpret_cast<const char*>(data), size}, options);
  if (!model.ok()) {
    if (model.error().message.empty() || model.error().where.empty()) std::abort();
    return 0;
  }
  const std::string text = print_text(**model);
  auto again = parse_text(text, {.memory_limit = size_t(256) << 20});
  if (!again.ok() || print_text(**again) != text || !equal(**model, **again)) std::abort();
  return 0;
}
