#include "ir/symbolic_dim.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tombolo {
namespace {

/// An independent evaluator of the text form: plain recursive descent over numbers.
class Evaluator {
 public:
  Evaluator(std::string_view text, const std::map<std::string, int64_t>& names)
      : text_(text), names_(names) {}
  int64_t value() {
    const int64_t result = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return result;
  }

 private:
  static int64_t floor_of(int64_t a, int64_t b) {
    int64_t q = a / b;
    if (q * b != a && ((a < 0) != (b < 0))) --q;
    return q;
  }
  bool take(std::string_view token) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  int64_t sum() {
    int64_t v = product();
    for (;;) {
      if (take("+"))
        v += product();
      else if (take("-"))
        v -= product();
      else
        return v;
    }
  }
  int64_t product() {
    int64_t v = unary();
    for (;;) {
      if (take("//")) {
        v = floor_of(v, unary());
      } else if (take("*")) {
        v *= unary();
      } else if (take("%")) {
        const int64_t b = unary();
        v -= b * floor_of(v, b);
      } else {
        return v;
      }
    }
  }
  int64_t unary() {
    if (take("-")) return -unary();
    if (take("(")) {
      const int64_t v = sum();
      EXPECT_TRUE(take(")")) << text_;
      return v;
    }
    for (const bool is_min : {true, false})
      if (take(is_min ? "min(" : "max(")) {
        const int64_t a = sum();
        EXPECT_TRUE(take(",")) << text_;
        const int64_t b = sum();
        EXPECT_TRUE(take(")")) << text_;
        return is_min ? std::min(a, b) : std::max(a, b);
      }
    take("");
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0)) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    EXPECT_FALSE(word.empty()) << text_ << " at " << at_;
    if (word.empty()) return 0;
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return std::stoll(word);
    return names_.at(word);
  }
  std::string_view text_;
  size_t at_ = 0;
  const std::map<std::string, int64_t>& names_;
};

int64_t evaluate(const std::string& text, const std::map<std::string, int64_t>& names) {
  return Evaluator(text, names).value();
}

std::string canonical(std::string_view text) { return SymDim::parse(text).to_string(); }

TEST(SymDim, Equations) {
  // Both sides have one canonical form.
  const std::pair<const char*, const char*> equal[] = {
      {"(H + 2 - 3)//1 + 1", "H"},
      {"(2*N)//2", "N"},
      {"(N*M)//M", "N"},
      {"N*M", "M*N"},
      {"(H - 1)//2 + 1", "(H + 1)//2"},
      {"-((-H)//2)", "(H + 1)//2"},
      {"(H + 2*3 - 7)//2 + 1", "(H + 1)//2"},
      {"((H + 1)//2 + 1)//2", "(H + 3)//4"},
      {"(H//2)//3", "H//6"},
      {"(2*H + 1)//2", "H"},
      {"(2*H + 1)//4", "H//2"},
      {"(N*M + M)//M", "N + 1"},
      {"(N + 1)*(M + 2)//(N + 1)", "M + 2"},
      {"(N*K)//(M*K)", "N//M"},
      {"(12*N*M)//(8*M)", "(3*N)//2"},
      {"N % 1", "0"},
      {"(4*N) % 2", "0"},
      {"(N*M) % M", "0"},
      {"N - N % 8", "8*(N//8)"},
      {"N + (8 - N % 8) % 8", "8*((N + 7)//8)"},
      {"(N + 8*M) % 8", "N % 8"},
      {"max(N, 0)", "N"},
      {"min(N, N + 1)", "N"},
      {"max(N - 1, N + 2)", "N + 2"},
      {"max(max(N, M), K)", "max(K, max(M, N))"},
      {"min(N, N)", "N"},
      {"N - min(N, 5) + min(N, 5)", "N"},
      {"max(0, N - min(1, N))", "N - min(N, 1)"},
      {"max(0, N//2)", "N//2"},
      {"(N % 4)//4", "0"},
      {"N - N", "0"},
      {"(N + M)*(N + M)", "N*N + 2*N*M + M*M"},
      {"0*N", "0"},
      {"7//2", "3"},
      {"-7//2", "-4"},
      {"-7 % 3", "2"},
  };
  for (const auto& [a, b] : equal) {
    EXPECT_TRUE(SymDim::parse(a).equals(SymDim::parse(b)))
        << a << " -> " << canonical(a) << "; " << b << " -> " << canonical(b);
    EXPECT_FALSE(SymDim::parse(a).differs(SymDim::parse(b))) << a;
  }
  const std::pair<const char*, const char*> open[] = {
      {"N", "M"}, {"N//2", "(N + 1)//2"}, {"(N//2)*2", "N"}, {"N*M", "N"}, {"max(N, 1)", "N"}};
  for (const auto& [a, b] : open) {
    EXPECT_FALSE(SymDim::parse(a).equals(SymDim::parse(b))) << a;
    EXPECT_FALSE(SymDim::parse(a).differs(SymDim::parse(b))) << a;
  }
  const std::pair<const char*, const char*> different[] = {
      {"N", "N + 1"}, {"N + 1", "0"}, {"2", "3"}, {"N % 4", "4"}, {"min(N, 3)", "N + 2 + M*2 - 1"}};
  for (const auto& [a, b] : different)
    EXPECT_TRUE(SymDim::parse(a).differs(SymDim::parse(b))) << a << " and " << b;
}

TEST(SymDim, TextForm) {
  EXPECT_EQ(canonical("N"), "N");
  EXPECT_EQ(canonical(" 1 + N*2 "), "2*N + 1");
  EXPECT_EQ(canonical("(H - 1)//2 + 1"), "(H + 1)//2");
  EXPECT_EQ(canonical("M - N"), "M - N");
  EXPECT_EQ(canonical("-N"), "-N");
  EXPECT_EQ(canonical("1 - N"), "1 - N");
  EXPECT_EQ(canonical("-(N//2)"), "-(N//2)");
  EXPECT_EQ(canonical("-N//2"), "-((N + 1)//2)");
  EXPECT_EQ(canonical("min(a, 3)"), "min(3, a)");
  EXPECT_EQ(canonical(""), "?");
  EXPECT_EQ(canonical("?"), "?");
  EXPECT_EQ(canonical("N//0"), "?");
  // What is no expression is a name.
  EXPECT_EQ(canonical("batch size"), "batch size");
  EXPECT_EQ(canonical("H/2"), "H/2");
  EXPECT_EQ(canonical("a +"), "a +");
  EXPECT_EQ(canonical("3d"), "3d");
  EXPECT_EQ(canonical("onnx::Gather_7"), "onnx::Gather_7");
  EXPECT_EQ(canonical("min"), "min");
  EXPECT_TRUE(SymDim::parse("12").is_value());
}

TEST(SymDim, UnknownPropagates) {
  const SymDim unknown, n = SymDim::symbol("N");
  EXPECT_TRUE((unknown + 1).is_unknown());
  EXPECT_TRUE((n * unknown).is_unknown());
  EXPECT_EQ((SymDim(0) * unknown).constant(), 0);
  EXPECT_FALSE(unknown.equals(unknown));
  EXPECT_FALSE(unknown.differs(SymDim(1)));
  EXPECT_TRUE(floor_div(n, 0).is_unknown());
  EXPECT_TRUE((SymDim(INT64_MAX) + 1).is_unknown());
  EXPECT_TRUE((SymDim(INT64_MIN) - 1).is_unknown());
  EXPECT_TRUE((n * INT64_MAX * 2).is_unknown());
}

TEST(SymDim, CeilDiv) {
  const SymDim h = SymDim::symbol("H"), s = SymDim::symbol("S");
  EXPECT_EQ(ceil_div(h, 2).to_string(), "(H + 1)//2");
  EXPECT_EQ(ceil_div(SymDim(7), 2).constant(), 4);
  EXPECT_EQ(ceil_div(SymDim(-7), 2).constant(), -3);
  EXPECT_TRUE(ceil_div(h * s, s).equals(h));
}

TEST(SymDim, BoundsKnowThatDimensionsAreNotNegative) {
  EXPECT_EQ(SymDim::parse("N + 3").lower_bound(), 3);
  EXPECT_EQ(SymDim::parse("N - 2*(N//2)").upper_bound(), 1);
  EXPECT_EQ(SymDim::parse("min(N, 4)").upper_bound(), 4);
  EXPECT_EQ(SymDim::parse("5 - min(N, 4)").lower_bound(), 1);
  EXPECT_EQ(SymDim::parse("N").upper_bound(), std::nullopt);
  EXPECT_EQ(SymDim::parse("M - N").lower_bound(), std::nullopt);
}

/// A random expression, as text.
std::string random_text(std::mt19937& random, int depth) {
  const auto pick = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  if (depth == 0 || pick(6) == 0) {
    const char* names[] = {"N", "M", "K"};
    return pick(2) == 0 ? std::to_string(pick(9)) : names[pick(3)];
  }
  const std::string a = random_text(random, depth - 1), b = random_text(random, depth - 1);
  switch (pick(9)) {
    case 0:
    case 1:
      return "(" + a + " + " + b + ")";
    case 2:
      return "(" + a + " - " + b + ")";
    case 3:
      return "(" + a + ")*(" + b + ")";
    case 4:
      return "(" + a + ")//" + std::to_string(1 + pick(8));
    case 5:
      return "((" + a + ") % " + std::to_string(1 + pick(8)) + ")";
    case 6:
      return "min(" + a + ", " + b + ")";
    case 7:
      return "max(" + a + ", " + b + ")";
    default:
      return "((" + a + ")*N//N)";
  }
}

TEST(SymDim, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(7);
  int known = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = random_text(random, 1 + round % 5);
    const SymDim dim = SymDim::parse(text);
    if (dim.is_unknown()) continue;
    ++known;
    const std::string printed = dim.to_string();
    const SymDim again = SymDim::parse(printed);
    ASSERT_TRUE(again.equals(dim)) << text << " -> " << printed << " -> " << again.to_string();
    const auto low = dim.lower_bound(), high = dim.upper_bound();
    for (int trial = 0; trial < 8; ++trial) {
      const std::map<std::string, int64_t> names = {
          {"N", 1 + random() % 12}, {"M", random() % 12}, {"K", random() % 300}};
      const int64_t expected = evaluate(text, names);
      ASSERT_EQ(evaluate(printed, names), expected) << text << " -> " << printed;
      ASSERT_GE(expected, low.value_or(INT64_MIN)) << text;
      ASSERT_LE(expected, high.value_or(INT64_MAX)) << text;
    }
  }
  EXPECT_GT(known, 15000);
}

TEST(SymDim, HostileSizesBecomeUnknown) {
  SymDim product = 1;
  for (int i = 0; i < 100; ++i) product = product * (SymDim::symbol("s" + std::to_string(i)) + 1);
  EXPECT_TRUE(product.is_unknown());
  SymDim nested = SymDim::symbol("N");
  for (int i = 0; i < 1000; ++i)
    nested =
        max(nested * SymDim::symbol("M" + std::to_string(i % 3)), floor_div(nested, 3)) + nested;
  EXPECT_TRUE(nested.is_unknown());
  const std::string deep = std::string(2000, '(') + "N" + std::string(2000, ')');
  EXPECT_EQ(SymDim::parse(deep).to_string(), deep);  // a name then
}

}  // namespace
}  // namespace tombolo
