#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "ir/text/parser.h"
#include "runtime/session.h"

namespace tombolo {

/// A session of a model as ONNX text; null, and a failure, where there is none.
inline std::unique_ptr<Session> session_for(std::string_view text, SessionOptions options = {}) {
  auto model = parse_text(text);
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return nullptr;
  auto session = Session::create(*std::move(model), options);
  EXPECT_TRUE(session) << session.error().message;
  return session ? *std::move(session) : nullptr;
}

}  // namespace tombolo
