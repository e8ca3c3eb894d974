#pragma once

// Symbolic integers as torch.export writes them: sympy's srepr
// ("Mul(Integer(2), Symbol('s0', positive=True))") or its plain text ("2*s0", "(s0//2) + 1").

#include <string>
#include <string_view>

#include "formats/common/json_view.h"
#include "ir/symbolic_dim.h"

namespace tombolo::pytorch {

/// Unknown where the expression is none that dimensions can say.
SymDim parse_sympy(std::string_view text);

/// {"as_int": 3}, {"as_expr": {"expr_str": "..."}}, or a plain number.
SymDim read_sym_int(Json value);

}  // namespace tombolo::pytorch
