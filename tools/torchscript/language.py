"""What the language has beside control flow: classes, enums, strings, annotations, attributes, futures."""
import math
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript.cases import I, T, case


class Color(Enum):
    RED = 1
    GREEN = 2


@case(more=lambda: (T(4, 2),))
def enum_switch():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.color = Color.GREEN

        def paint(self, x, c: Color):
            if c == Color.RED:
                return x + 1
            return x * c.value

        def forward(self, x):
            return self.paint(x, self.color) + self.paint(x, Color.RED)
    return M(), (T(2, 3),)


class Mode(Enum):
    UP = "up"
    DOWN = "down"


@case()
def enum_text():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.mode = Mode.DOWN

        def forward(self, x):
            for m in Mode:
                if m == self.mode:
                    x = x + len(m.name)
            if self.mode is Mode.UP:
                return x
            return x - 100 if self.mode.value == "down" else x
    return M(), (T(2, 3),)


@case()
def constants_and_final():
    class M(nn.Module):
        factor: Final[float]
        steps: Final[int]
        names: List[str]

        def __init__(self):
            super().__init__()
            self.factor = 1.5
            self.steps = 3
            self.names = ["a", "bb"]
            self.table = {"a": 1.0, "b": 2.0}
            self.shape = (2, 3)

        def forward(self, x):
            for i in range(self.steps):
                x = x * self.factor
            total = 0.0
            for k in self.table:
                total += self.table[k]
            a, b = self.shape
            return x + total + a * b + len(self.names[1])
    return M(), (T(2, 3),)


@case()
def unused_and_ignored():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.flag = False

        @torch.jit.unused
        def python_only(self, x):
            return [v for v in x.numpy()]

        def forward(self, x):
            if self.flag:
                return self.python_only(x)
            if not torch.jit.is_scripting():
                return x
            return x + 1
    return M(), (T(2, 3),)


@case()
def has_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.extra = nn.Linear(3, 3)

        def forward(self, x):
            if hasattr(self, "extra"):
                x = self.extra(x)
            if hasattr(self, "missing"):
                x = self.missing(x)
            return x
    return M(), (T(2, 3),)


@case(more=lambda: (T(5, 3),))
def futures():
    def work(x: Tensor, k: int) -> Tensor:
        return x * k + 1
    work = torch.jit.script(work)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            f = torch.jit.fork(work, x, 3)
            g = torch.jit.fork(self.fc, x)
            fs: List[torch.jit.Future[Tensor]] = []
            for i in range(3):
                fs.append(torch.jit.fork(work, x, i))
            total = torch.jit.wait(f) + torch.jit.wait(g)
            for one in fs:
                total = total + torch.jit.wait(one)
            return total
    return M(), (T(2, 3),)


@case(more=lambda: (T(2, 8),))
def any_and_isinstance():
    class M(nn.Module):
        def describe(self, v: Any) -> int:
            if isinstance(v, int):
                return v
            if isinstance(v, float):
                return int(v * 2)
            if isinstance(v, str):
                return len(v)
            if isinstance(v, Tensor):
                return v.size(0)
            return -1

        def forward(self, x):
            return x + self.describe(3) + self.describe(2.5) + self.describe("four") + self.describe(x)
    return M(), (T(3, 8),)


@case(more=lambda: (T(2, 8), 3))
def union_argument():
    class M(nn.Module):
        def scale(self, x, by: Union[int, float, Tensor]):
            if isinstance(by, int):
                return x * by
            elif isinstance(by, float):
                return x / by
            else:
                return x + by

        def forward(self, x, n: int):
            return self.scale(x, n) + self.scale(x, 0.5) + self.scale(x, x)
    return M(), (T(3, 8), 2)


@case()
def string_functions():
    class M(nn.Module):
        def forward(self, x):
            s = "Layer.0.weight"
            parts = s.split(".")
            n = int(parts[1]) + len(s) + s.find("0") + s.count("e")
            if s.startswith("Layer") and s.endswith("weight") and "0" in s:
                n += 1
            if s.lower() == "layer.0.weight" and s.upper()[0] == "L":
                n += 2
            t = "-".join(parts).replace("-", "__")
            if t == "Layer__0__weight" and not t.isdigit() and "12".isdigit():
                n += 4
            u = "  pad ".strip() + "xxx"
            if u == "padxxx":
                n += 8
            v = "{} is {}".format("a", 5) + f"{n}"
            if v.startswith("a is 5"):
                n += 16
            for c in "abc":
                if c > "a":
                    n += 32
            return x + n
    return M(), (T(2, 2),)


@case()
def string_options():
    class M(nn.Module):
        def pool(self, x, kind: str):
            table = {"max": 0, "mean": 1, "sum": 2}
            if kind not in table:
                raise ValueError("kind must be one of max, mean, sum")
            k = table[kind]
            if k == 0:
                return x.amax(-1)
            elif k == 1:
                return x.mean(-1)
            return x.sum(-1)

        def forward(self, x):
            out: List[Tensor] = []
            for kind in ["max", "mean", "sum"]:
                out.append(self.pool(x, kind))
            return torch.stack(out, -1)
    return M(), (T(2, 5),)


@case(numbers=True, more=lambda: (torch.tensor(-7), torch.tensor(2)))
def integer_semantics():
    class M(nn.Module):
        def forward(self, a: Tensor, b: Tensor):
            x, y = int(a), int(b)
            return x // y, x % y, x / y, x ** 2, -x, abs(x), x << 1, x >> 1, x & 6, x | 1, x ^ 3, min(x, y), max(x, y)
    return M(), (torch.tensor(7), torch.tensor(-2))


@case(numbers=True, more=lambda: (torch.tensor(-7.5, dtype=torch.float64), torch.tensor(2.0)))
def float_semantics():
    class M(nn.Module):
        def forward(self, a: Tensor, b: Tensor):
            x, y = float(a), float(b)
            return (x // y, x % y, x / y, abs(x) ** 0.5, -x, round(x), int(x), float(int(x)), math.floor(x), math.ceil(x),
                    math.sqrt(abs(x)), math.exp(y), math.log(abs(x)), math.sin(x), math.cos(x), math.tanh(x), math.atan(x),
                    math.pow(abs(x), 1.5), math.fabs(x), math.copysign(3.0, x), math.fmod(x, y), bool(x), x > y, x == y)
    return M(), (torch.tensor(5.25, dtype=torch.float64), torch.tensor(-2.0))


@case(numbers=True, more=lambda: (torch.tensor(3), torch.tensor(2.5, dtype=torch.float64)))
def mixed_numbers():
    class M(nn.Module):
        def forward(self, a: Tensor, b: Tensor):
            i, f = int(a), float(b)
            g = i * f + i / 2 - f // 1
            k = int(g) if g > 0 else int(-g)
            t = i + True
            u = float(i) ** 2
            return g, k, t, u, i == f, i < f, min(float(i), f), max(float(i), f), a + i, b * i, a * f
    return M(), (torch.tensor(5), torch.tensor(-1.5, dtype=torch.float64))


@case()
def known_math():
    class M(nn.Module):
        def forward(self, x):
            n = x.dim()
            return (x * math.pi + math.e, math.sqrt(16) + math.log10(100.0) + math.log(2.0) + math.log1p(0.5),
                    x + math.gcd(12, 18) + math.factorial(n) + math.floor(-1.5) + math.ceil(-1.5),
                    x + round(2.5) + round(-3.5) + 7 // -2 + -7 % 3 + 2 ** 10 + int("12") + float("1.5"),
                    x * (math.inf if n > 5 else 1.0), x + math.degrees(0.1) + math.radians(90),
                    torch.tensor([math.isnan(math.nan), math.isinf(1.0)]))
    return M(), (T(2, 3),)


@torch.jit.interface
class Stage(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(T(3))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.by


@case()
def interfaces():
    class M(nn.Module):
        stage: Stage

        def __init__(self):
            super().__init__()
            self.stage = Shift()
            self.stages = nn.ModuleList([Double(), Shift()])

        def forward(self, x):
            x = self.stage.forward(x)
            for i in range(2):
                s: Stage = self.stages[i] if i == 0 else self.stages[1]
                x = s.forward(x)
            return x
    return M(), (T(2, 3),)


@torch.jit.script
class Counter:
    def __init__(self, start: int = 0, names: Optional[List[str]] = None):
        self.n = start
        self.items = torch.jit.annotate(List[Tensor], [])
        self.best = torch.jit.annotate(Optional[Tensor], None)

    def push(self, x: Tensor) -> int:
        self.items.append(x)
        self.n += 1
        if self.best is None or bool(x.sum() > -1e9):
            self.best = x
        return self.n

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Tensor:
        return self.items[i]

    def __contains__(self, n: int) -> bool:
        return n < self.n

    def __add__(self, other: int) -> int:
        return self.n + other

    def __lt__(self, other: int) -> bool:
        return self.n < other

    @property
    def twice(self) -> int:
        return self.n * 2

    @staticmethod
    def make(n: int):
        return Counter(n)


@case()
def script_class_magic():
    class M(nn.Module):
        def forward(self, x):
            c = Counter.make(2)
            c.push(x)
            k = c.push(x * 2)
            y = c[1] + len(c) + k + (c + 5) + c.twice
            if 3 in c and c < 100:
                y = y + 1
            best = c.best
            if best is not None:
                y = y + best
            return y
    return M(), (T(2, 3),)


@case(more=lambda: (T(4, 3),))
def script_class_in_branch():
    class M(nn.Module):
        def forward(self, x):
            c = Counter(0)
            if bool(x.sum() > 0):
                c.push(x)
                c.push(x + 1)
            else:
                c.push(x - 1)
                c.n = 7
            return c.items[0] * c.n
    return M(), (T(2, 3),)


@case()
def properties_and_exports():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self._scale = 3

        @property
        def scale(self) -> int:
            return self._scale

        @torch.jit.export
        def encode(self, x, k: int = 2):
            return x * self.scale + k

        def forward(self, x):
            return self.encode(x, 2) + self.encode(x, k=5)
    return M(), (T(2, 3),)


@case()
def default_and_keyword_arguments():
    class Inner(nn.Module):
        def forward(self, x, a: int = 1, b: float = 2.0, c: Optional[Tensor] = None):
            if c is not None:
                x = x + c
            return x * a + b

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x, k: int = 4, f: float = 0.25, flag: bool = True, name: str = "a"):
            y = self.inner(x) + self.inner(x, 3, b=0.5) + self.inner(x, b=1.0, c=x, a=2)
            return y * k + f if flag and name == "a" else y
    return M(), (T(2, 3),)


@case()
def annotate_and_cast():
    class M(nn.Module):
        def forward(self, x):
            empty = torch.jit.annotate(List[Tensor], [])
            empty.append(x)
            maybe = torch.jit.annotate(Optional[Tensor], None)
            if maybe is None:
                maybe = x * 2
            d = torch.jit.annotate(Dict[int, Tensor], {})
            d[3] = x
            n: int = torch.jit.annotate(int, 5)
            return empty[0] + torch.jit._unwrap_optional(maybe) + d[3] + n
    return M(), (T(2, 3),)


@case()
def shadowed_and_unpacked():
    class M(nn.Module):
        def forward(self, x):
            a, b, *rest = (x, x + 1, x + 2, x + 3)
            a, b = b, a
            (c, d), e = (a, b), rest[0]
            for i in range(2):
                a = a + i
            i = 10
            f = g = x * i
            g += 1
            h = [v for v in rest]
            return a, b, c, d, e, f, g, h[1]
    return M(), (T(2, 2),)


@case()
def device_and_dtype():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", T(3).double())

        def forward(self, x):
            y = torch.zeros(x.shape, dtype=x.dtype, device=x.device) + torch.ones_like(x, dtype=torch.float64)
            if x.is_cuda or x.device.type != "cpu":
                y = y * 100
            if x.dtype == torch.float32:
                y = y + 1
            z = y.to(x.dtype).to("cpu").type_as(self.w).float().half().to(torch.float64)
            info = x.new_zeros(2, 3) + x.new_ones((3,)) + x.new_full([2, 1], 4)
            return y, z, info, torch.tensor(3, dtype=torch.int32).to(x), x.int().to(torch.bool), x.is_floating_point()
    return M(), (T(2, 3),)


@case("trace", more=lambda: (T(5, 6),))
def traced_calls_scripted():
    @torch.jit.script
    def rows(x: Tensor) -> Tensor:
        out = torch.zeros_like(x[0])
        for i in range(x.size(0)):
            if bool(x[i].sum() > 0):
                out = out + x[i]
        return out

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x):
            return rows(self.fc(x)) * 2
    return M(), (T(3, 6),)


@case(more=lambda: (T(3, 2, 4),))
def scripted_calls_traced():
    traced = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), T(2, 4))

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = traced

        def forward(self, x):
            for _ in range(2):
                x = self.body(x)
            return x
    return M(), (T(2, 2, 4),)


@case()
def context_managers():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            with torch.no_grad():
                y = self.fc(x)
            with torch.autograd.profiler.record_function("part"):
                z = y + 1
            return z.detach() + y
    return M(), (T(2, 3),)
