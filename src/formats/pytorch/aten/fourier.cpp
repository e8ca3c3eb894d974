// Fourier transforms, on pairs.

#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// How results are scaled: torch's numbers of _fft_*.
enum Norm : int64_t { kNone = 0, kRoot = 1, kByN = 2 };

Norm norm_of(const std::string& name, bool forward) {
  if (name == "ortho") return kRoot;
  if (name == "forward") return forward ? kByN : kNone;
  return forward ? kNone : kByN;
}

Value* scaled(C& c, Value* x, const SymInt& count, Norm norm) {
  if (norm == kNone) return x;
  Value* n = c.operand_of(Arg(count), c.dtype(x));
  return c.div(x, norm == kRoot ? c.op("Sqrt", {n}) : n);
}

/// One axis of pairs, not scaled.
Value* transform(C& c, Value* z, int64_t axis, bool forward) {
  Value* y = c.op("DFT", {z, nullptr, c.b.int_scalar(axis)}, {{"inverse", !forward}});
  if (c.has_rank(z)) c.b.set_type(y, c.dtype(z), SymShape(c.b.shape(z)));
  // ONNX divides the inverse by the length.
  return forward ? y : c.mul(y, c.operand_of(Arg(c.size(z, axis)), c.dtype(z)));
}

Value* complex_to_complex(C& c, Value* z, const Ints& axes, Norm norm, bool forward) {
  SymInt count(1);
  for (const int64_t axis : axes) {
    count = c.mul(count, c.size(z, axis));
    z = transform(c, z, axis, forward);
  }
  return scaled(c, z, count, norm);
}

Value* half_of(C& c, Value* z, int64_t axis) {
  const SymInt keep = c.add(c.floor_div(c.size(z, axis), SymInt(2)), SymInt(1));
  return c.slice(z, axis, SymInt(0), keep);
}

Value* real_to_complex(C& c, Value* x, const Ints& axes, Norm norm, bool onesided,
                       bool forward = true) {
  SymInt count(1);
  for (const int64_t axis : axes) count = c.mul(count, c.size(x, axis));
  Value* z = c.to_complex(x, C::complex_of(c.dtype(x)));
  for (size_t i = axes.size(); i-- > 0;) {
    z = transform(c, z, axes[i], forward);
    if (i + 1 == axes.size() && onesided) z = half_of(c, z, axes[i]);
  }
  return scaled(c, z, count, norm);
}

/// The whole spectrum of a real signal from its first half, along one axis.
Value* whole_of(C& c, Value* z, int64_t axis, const SymInt& n) {
  const SymInt half = c.add(c.floor_div(n, SymInt(2)), SymInt(1));
  Value* head = c.slice(z, axis, SymInt(0), half);
  const SymInt rest = c.sub(n, half);
  if (rest.is(0)) return head;
  Value* tail = c.slice(z, axis, SymInt(1), c.add(rest, SymInt(1)));
  Value* mirrored = c.lower("flip", {Arg(c.cell(tail)), Arg::ints(Ints{axis})});
  return c.concat({head, complex_conj(c, mirrored)}, axis);
}

Value* complex_to_real(C& c, Value* z, const Ints& axes, Norm norm, const SymInt& last,
                       bool forward = false) {
  SymInt count = last;
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    count = c.mul(count, c.size(z, axes[i]));
    z = transform(c, z, axes[i], forward);
  }
  z = transform(c, whole_of(c, z, axes.back(), last), axes.back(), forward);
  return scaled(c, c.re(z), count, norm);
}

// ---- the operators below the public ones ----

Ints axes_of(C& c, const char* name, int64_t r) {
  Ints axes;
  for (const int64_t dim : c.ints(name)) axes.push_back(c.axis(dim, r));
  return axes;
}

void fft_c2c(C& c) {
  Value* z = c.x("self");
  c.out(complex_to_complex(c, z, axes_of(c, "dim", c.rank(z) - 1),
                           static_cast<Norm>(c.integer("normalization")), c.flag("forward")),
        c.type("self"));
}
void fft_r2c(C& c) {
  Value* x = c.x("self");
  c.out(real_to_complex(c, x, axes_of(c, "dim", c.rank(x)),
                        static_cast<Norm>(c.integer("normalization")), c.flag("onesided")),
        C::complex_of(c.dtype(x)));
}
void fft_c2r(C& c) {
  Value* z = c.x("self");
  c.out(complex_to_real(c, z, axes_of(c, "dim", c.rank(z) - 1),
                        static_cast<Norm>(c.integer("normalization")), c.sym("last_dim_size")));
}

// ---- torch.fft ----

/// Cut or filled with zeros to a length.
Value* resized(C& c, Value* x, int64_t axis, const SymInt& n) {
  const SymInt have = c.size(x, axis);
  if (have.dim.equals(n.dim)) return x;
  if (!have.is_number() || !n.is_number()) {
    c.refuse("a transform of another length than a dynamic input's");
    return x;
  }
  if (n.dim.value() < 1) {
    c.refuse("a transform of no elements");
    return x;
  }
  if (n.dim.value() < have.dim.value()) return c.slice(x, axis, SymInt(0), n);
  Ints pads(2 * static_cast<size_t>(c.rank(x)), 0);
  pads[static_cast<size_t>(c.rank(x) + axis)] = n.dim.value() - have.dim.value();
  return c.op("Pad", {x, c.b.ints(pads)});
}

/// fft, ifft, rfft, irfft, hfft, ihfft over one, two or all axes; the name tells which.
void fft(C& c) {
  const std::string_view kind = c.detail();  // "fft", "rfft", ...
  const bool complex = c.is_complex("self");
  DType type = c.type("self");
  Value* x = c.x("self");
  if (!complex && !is_float(c.dtype(x))) x = c.cast(x, c.default_float);
  type = C::complex_of(complex ? type : c.dtype(x));
  const int64_t r = c.rank(x) - (complex ? 1 : 0);
  Ints axes;
  if (c.given("dim")) {
    axes = axes_of(c, "dim", r);
  } else if (c.has_arg("s") && c.given("s")) {
    const auto n = static_cast<int64_t>(c.syms("s").size());
    if (n > r) return c.refuse("more lengths than axes");
    for (int64_t i = r - n; i < r; ++i) axes.push_back(i);
  } else {
    for (int64_t i = 0; i < r; ++i) axes.push_back(i);
  }
  SymInts lengths;
  if (c.has_arg("n") && c.given("n")) lengths.push_back(c.sym("n"));
  if (c.has_arg("s") && c.given("s")) lengths = c.syms("s");
  const std::string norm_name = c.given("norm") ? c.text("norm") : "backward";
  const bool to_real = kind == "irfft" || kind == "hfft";
  const bool forward = kind == "fft" || kind == "rfft" || kind == "hfft";
  const Norm norm = norm_of(norm_name, forward);
  if (axes.empty()) return c.refuse("a transform over no axis");
  // The last axis of irfft is given by the length of what comes out.
  SymInt last = to_real ? c.mul(c.sub(c.size(x, axes.back()), SymInt(1)), SymInt(2)) : SymInt(0);
  for (size_t i = 0; i < lengths.size() && i < axes.size(); ++i) {
    if (lengths[i].is(-1)) continue;
    SymInt n = lengths[i];
    if (to_real && i + 1 == axes.size()) {
      last = n;
      n = c.add(c.floor_div(n, SymInt(2)), SymInt(1));
    }
    x = resized(c, x, axes[i], n);
  }
  if (kind == "rfft" || kind == "ihfft") {
    if (kind == "rfft") return c.out(real_to_complex(c, x, axes, norm, true), type);
    return c.out(real_to_complex(c, x, axes, norm, true, false), type);
  }
  Value* z = complex ? x : c.to_complex(x, type);
  if (to_real) return c.out(complex_to_real(c, z, axes, norm, last, kind == "hfft"));
  c.out(complex_to_complex(c, z, axes, norm, forward), type);
}

void fft_shift(C& c) {
  const bool inverse = c.name() == "fft_ifftshift";
  Value* x = c.x("self");
  const int64_t r = c.rank(x) - (c.is_complex("self") ? 1 : 0);
  Ints axes;
  if (c.given("dim")) {
    axes = axes_of(c, "dim", r);
  } else {
    for (int64_t i = 0; i < r; ++i) axes.push_back(i);
  }
  SymInts shifts;
  for (const int64_t axis : axes) {
    const SymInt n = c.size(x, axis);
    shifts.push_back(inverse ? c.floor_div(c.add(n, SymInt(1)), SymInt(2))
                             : c.floor_div(n, SymInt(2)));
  }
  c.out(c.lower("roll", {c.arg("self"), Arg::ints(shifts), Arg::ints(axes)}), c.type("self"));
}

void fft_freq(C& c) {
  const int64_t n = c.integer("n");
  const double d = c.has_arg("d") ? c.real("d") : 1;
  const bool half = c.name().starts_with("fft_rfftfreq");
  const DType type = c.dtype("dtype").value_or(c.default_float);
  const int64_t count = half ? n / 2 + 1 : n;
  if (n <= 0 || n > (1 << 20)) return c.refuse("a length out of range");
  const int64_t dims[] = {count};
  auto tensor = Tensor::allocate(DType::kFloat64, dims);
  if (!tensor) return c.refuse("a length out of range");
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = half || i < (n + 1) / 2 ? i : i - n;
    tensor->set_double(i, static_cast<double>(k) / (static_cast<double>(n) * d));
  }
  c.out(c.cast(c.b.constant(*tensor, "frequencies"), type));
}

/// The window of a short-time transform, as long as the transform; real unless it was given so.
Value* window_of(C& c, int64_t n_fft, DType type) {
  const int64_t length = c.given("win_length") ? c.integer("win_length") : n_fft;
  if (!c.given("window") && length == n_fft) return nullptr;
  const bool complex = c.is_complex("window");
  Value* window = c.given("window") ? c.x("window") : c.full({SymInt(length)}, 1, type);
  const int64_t left = (n_fft - length) / 2, right = n_fft - length - left;
  if (length == n_fft) return window;
  if (length < 0 || length > n_fft) {
    c.refuse("a window that is longer than the transform");
    return window;
  }
  return c.op("Pad", {window, complex ? c.b.ints({left, 0, right, 0}) : c.b.ints({left, right})});
}

/// [B, T, n] times the window; pairs where one of them is.
Value* windowed(C& c, Value* frames, bool& complex, Value* window, bool complex_window) {
  if (window == nullptr) return frames;
  if (complex_window && !complex) frames = c.to_complex(frames, C::complex_of(c.dtype(frames)));
  if (complex_window) {
    complex = true;
    return complex_mul(c, frames, window);
  }
  return c.mul(frames, complex ? c.unsqueeze(window, {1}) : window);
}

void stft(C& c) {
  Value* x = c.x("self");
  bool complex = c.is_complex("self");
  const DType type = c.type("self");
  const int64_t n_fft = c.integer("n_fft");
  const int64_t hop = c.given("hop_length") ? c.integer("hop_length") : n_fft / 4;
  const bool batched = c.rank(x) == (complex ? 3 : 2);
  if (!batched) x = c.unsqueeze(x, {0});
  if (c.has_arg("center") && c.flag("center")) {
    const int64_t pad = n_fft / 2;
    x = c.lower("pad", {Arg(c.cell(x, type)), Arg::ints(Ints{pad, pad}), c.arg("pad_mode"), Arg()});
  }
  Value* window = window_of(c, n_fft, c.dtype(x));
  // [B, T, n_fft]
  Value* frames = c.lower("unfold", {Arg(c.cell(x, type)), Arg(1), Arg(n_fft), Arg(hop)});
  frames = windowed(c, frames, complex, window, c.is_complex("window"));
  const bool onesided = c.given("onesided") ? c.flag("onesided") : !complex;
  const Norm norm = c.flag("normalized") ? kRoot : kNone;
  if (complex && onesided) return c.refuse("one side of a complex signal's transform");
  Value* z = complex ? complex_to_complex(c, frames, {2}, norm, true)
                     : real_to_complex(c, frames, {2}, norm, onesided);
  z = c.transpose(z, {0, 2, 1, 3});
  if (!batched) z = c.squeeze(z, {0});
  const bool as_complex = c.given("return_complex") && c.flag("return_complex");
  if (as_complex)
    c.out(z, C::complex_of(c.dtype(x)));
  else
    c.out(z);
}

/// Frames [B, T, n] added where they lie in the signal, `hop` apart: [B, n + hop (T - 1)].
Value* overlapped(C& c, Value* frames, int64_t n, int64_t hop, const SymInt& length) {
  Value* columns = c.transpose(frames, {0, 2, 1});
  Value* y = c.op("Col2Im", {columns, c.shape_value(SymInts{SymInt(1), length}), c.b.ints({1, n})},
                  {{"strides", Ints{1, hop}}});
  return c.squeeze(y, {1, 2});
}

/// The signal whose transform is nearest to the one given: frames through the window once more,
/// added up, divided by the sum of the squares of the windows.
void istft(C& c) {
  Value* z = c.x("self");
  if (!c.is_complex("self")) return c.refuse("a transform that is not complex");
  const int64_t n = c.integer("n_fft");
  const int64_t hop = c.given("hop_length") ? c.integer("hop_length") : n / 4;
  const bool batched = c.rank(z) == 4;
  if (!batched) z = c.unsqueeze(z, {0});
  if (n <= 0 || hop <= 0) return c.refuse("frames without a length");
  const SymInt rows = c.size(z, 1), count = c.size(z, 2);
  const bool onesided = c.given("onesided") ? c.flag("onesided") : !rows.is(n);
  bool complex = c.flag("return_complex");
  if (complex && onesided) return c.refuse("a complex signal from one side of its transform");
  Value* window = window_of(c, n, c.dtype(z));
  const Norm norm = c.flag("normalized") ? kRoot : kByN;
  z = c.transpose(z, {0, 2, 1, 3});
  Value* frames = complex ? complex_to_complex(c, z, {2}, norm, false)
                          : complex_to_real(c, z, {2}, norm, SymInt(n));
  if (c.is_complex("window") && !complex) return c.refuse("a complex window of a real signal");
  frames = windowed(c, frames, complex, window, c.is_complex("window"));
  const SymInt whole = c.add(SymInt(n), c.mul(SymInt(hop), c.sub(count, SymInt(1))));
  const auto added = [&](Value* pieces, bool pairs) {
    if (!pairs) return overlapped(c, pieces, n, hop, whole);
    return c.pair(overlapped(c, c.re(pieces), n, hop, whole),
                  overlapped(c, c.im(pieces), n, hop, whole));
  };
  Value* y = added(frames, complex);
  const bool centred = c.flag("center");
  const SymInt begin(centred ? n / 2 : 0);
  const SymInt end = c.given("length") ? c.add(begin, c.sym("length"))
                     : centred         ? c.sub(whole, SymInt(n / 2))
                                       : whole;
  y = c.slice(y, 1, begin, end);
  const bool pairs = c.is_complex("window");
  Value* square = window == nullptr ? c.full({SymInt(n)}, 1, c.dtype(z))
                  : pairs           ? complex_mul(c, window, window)
                                    : c.mul(window, window);
  SymInts spread{SymInt(1), count, SymInt(n)};
  if (pairs) spread.emplace_back(2);
  Value* below = c.slice(added(c.expand(square, spread), pairs), 1, begin, end);
  if (pairs)
    y = complex_div(c, y, below);
  else
    y = c.div(y, complex ? c.unsqueeze(below, {2}) : below);
  if (c.given("length")) {  // zeros where the frames end before
    const SymInt missing = c.maximum(c.sub(end, whole), SymInt(0));
    SymInts zeros = c.sizes(y);
    zeros[1] = missing;
    if (!missing.is(0)) y = c.concat({y, c.full(zeros, 0, c.dtype(y))}, 1);
  }
  if (!batched) y = c.squeeze(y, {0});
  if (complex)
    c.out(y, c.type("self"));
  else
    c.out(y);
}

#define FFT1(name) \
  { "fft_" name "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", fft, name }
#define FFT2(name)                                                                                 \
  {                                                                                                \
    "fft_" name "2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", \
        fft, name                                                                                  \
  }
#define FFTN(name)                                                                               \
  {                                                                                              \
    "fft_" name "n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", \
        fft, name                                                                                \
  }
#define OPTIONS \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

constexpr Row kFourierRows[] = {
    {"_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", fft_c2c},
    {"_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", fft_r2c},
    {"_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
     fft_c2r},
    FFT1("fft"),
    FFT1("ifft"),
    FFT1("rfft"),
    FFT1("irfft"),
    FFT1("hfft"),
    FFT1("ihfft"),
    FFT2("fft"),
    FFT2("ifft"),
    FFT2("rfft"),
    FFT2("irfft"),
    FFT2("hfft"),
    FFT2("ihfft"),
    FFTN("fft"),
    FFTN("ifft"),
    FFTN("rfft"),
    FFTN("irfft"),
    FFTN("hfft"),
    FFTN("ihfft"),
    {"fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", fft_shift},
    {"fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", fft_shift},
    {"fft_fftfreq(int n, float d=1.0, *, " OPTIONS ") -> Tensor", fft_freq},
    {"fft_rfftfreq(int n, float d=1.0, *, " OPTIONS ") -> Tensor", fft_freq},
    {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
     "window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
     "align_to_window=None) -> Tensor",
     stft},
    {"stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
     "window=None, bool center=True, str pad_mode='reflect', bool normalized=False, bool? "
     "onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     stft},
    {"istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
     "window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
     "bool return_complex=False) -> Tensor",
     istft},
};

}  // namespace

std::span<const Row> fourier_rows() { return kFourierRows; }

}  // namespace tombolo::pytorch
