"""One tensor under several names, written in place, around branches and loops that depend on data."""
from typing import List

import torch
from torch import nn

from torchscript.cases import T, case


@case(more=lambda: (-T(3, 4).abs(),))
def alias_on_both_sides():
    class M(nn.Module):
        def forward(self, x):
            x = x.clone()
            if bool(x.sum() > 0):
                y = x
                y.add_(1)
            else:
                y = x
            y.mul_(2)
            return x, y
    return M(), (T(3, 4).abs(),)


@case(more=lambda: (-T(3, 4).abs(),))
def written_or_bound_anew():
    class M(nn.Module):
        def forward(self, x):
            x = x.clone()
            kept = x
            if bool(x.sum() > 0):
                x.add_(1)
            else:
                x = x * 2
            return x + 1, kept
    return M(), (T(3, 4).abs(),)


@case(more=lambda: (-T(3, 4).abs(),))
def list_written_or_replaced():
    class M(nn.Module):
        def forward(self, x):
            a = x.clone()
            items = [a, x]
            if bool(x.sum() > 0):
                a.add_(1)
            else:
                items = [x * 3, a]
            return items[0], items[1], a
    return M(), (T(3, 4).abs(),)


@case(more=lambda: (-T(3, 4).abs(),))
def buffer_of_one_branch():
    class M(nn.Module):
        def __init__(self):
            super(M, self).__init__()
            self.register_buffer("seen", torch.ones(4))

        def forward(self, x):
            if bool(x.sum() > 0):
                self.seen.add_(x[0])
            return x + self.seen
    return M(), (T(3, 4).abs(),)


@case(more=lambda: (T(3, 4), torch.tensor(0)))
def buffer_of_a_loop():
    class M(nn.Module):
        def __init__(self):
            super(M, self).__init__()
            self.register_buffer("seen", torch.ones(4))

        def forward(self, x, n: torch.Tensor):
            for i in range(int(n)):
                self.seen.mul_(2)
            return x + self.seen
    return M(), (T(3, 4), torch.tensor(3))


@case(more=lambda: (T(3, 4), torch.tensor(0)))
def view_written_in_a_loop():
    class M(nn.Module):
        def forward(self, x, n: torch.Tensor):
            x = x.clone()
            row = x[1]
            for i in range(int(n)):
                row.add_(1)
                x.mul_(2)
            return x, row
    return M(), (T(3, 4), torch.tensor(3))


@case(more=lambda: (T(3, 4), torch.tensor(0)))
def alias_not_read_again():
    class M(nn.Module):
        def forward(self, x, n: torch.Tensor):
            y = x.clone()
            for i in range(int(n)):
                y = y * 2
            y.add_(1)
            return y
    return M(), (T(3, 4), torch.tensor(3))


@case(more=lambda: (-T(3, 4).abs(),))
def rank_of_nothing():
    class M(nn.Module):
        def forward(self, x):
            keep = torch.nonzero(x.sum(1) > 0)[:, 0]
            rows = x[keep]
            if rows.size(0) > 0:
                rows = rows.reshape(rows.size(0), -1, 2)
            parts = rows.reshape(-1, 2)
            return parts, rows.sum(0).sum()
    return M(), (T(3, 4).abs(),)


# What cannot be told is refused; tests/cli looks for the reason.

@case()
def refused_alias_of_one_branch():
    class M(nn.Module):
        def forward(self, x):
            x = x.clone()
            y = x
            if bool(x.sum() > 0):
                y = x * 2
            y.add_(1)
            return x, y
    return M(), (T(3, 4),)


@case()
def refused_alias_of_no_turn():
    class M(nn.Module):
        def forward(self, x, n: torch.Tensor):
            x = x.clone()
            y = x
            for i in range(int(n)):
                y = y * 2
            y.add_(1)
            return x, y
    return M(), (T(3, 4), torch.tensor(0))


@case()
def refused_write_after_append():
    class M(nn.Module):
        def forward(self, x, n: torch.Tensor):
            x = x.clone()
            items: List[torch.Tensor] = []
            for i in range(int(n)):
                x.add_(1)
                items.append(x)
            return torch.stack(items)
    return M(), (T(3, 4), torch.tensor(2))


@case()
def refused_write_after_branch():
    class M(nn.Module):
        def forward(self, x):
            a = x.clone()
            items: List[torch.Tensor] = [x]
            if bool(x.sum() > 0):
                items.append(a)
            a.add_(1)
            return torch.stack(items)
    return M(), (T(3, 4).abs(),)


@case()
def refused_twins_of_a_loop():
    class M(nn.Module):
        def forward(self, x, n: torch.Tensor):
            a = x * 1
            b = x * 2
            for i in range(int(n)):
                a.add_(1)
                c = a + b
                a = c
                b = c
            return a, b
    return M(), (T(3, 4), torch.tensor(3))


@case(kind="trace")
def names_for_one_tensor():
    """Functions that give back the tensor itself where there is nothing to do."""
    class M(nn.Module):
        def forward(self, x):
            x = x.clone()
            a = torch.nn.functional.dropout(x, 0.5, False)
            b = torch.atleast_2d(x)
            d = x.to(x.dtype)
            e = torch.positive(x)
            a[0] = 1
            b[1] = 2
            d[:, 0].mul_(3)
            e.add_(1)
            return x, a, b, d, e
    return M(), (T(3, 4),)


@case()
def names_for_one_tensor_scripted():
    class M(nn.Module):
        def forward(self, x):
            x = x.clone()
            a = torch.nn.functional.dropout(x, 0.5, False)
            b = torch.as_tensor(x)
            d = x.float()
            a[0] = 1
            b[1] = 2
            d[:, 0].mul_(3)
            return x, a, b, d
    return M(), (T(3, 4),)


@case(kind="trace")
def written_where_shown_twice():
    """A write through a view that shows an element in several places: all of them change, and only where it was written."""
    class M(nn.Module):
        def forward(self, x, y):
            x, y = x.clone(), y.clone()
            wide = x.expand(3, 3, 4)
            wide.diagonal().neg_()
            windows = y.unfold(0, 2, 1)
            windows[1].clamp_(-0.5, 0.5)
            return x, wide, y, windows
    return M(), (T(3, 4), T(5, 2))


@case(more=lambda: (-T(3, 4).abs(),))
def turned_in_a_branch():
    """Axes exchanged in place in one branch; how the tensor lies in memory is open from then on."""
    class M(nn.Module):
        def forward(self, x):
            x = x.clone()
            if bool(x.sum() > 0):
                x.transpose_(0, 1)
                x.mul_(2)
            else:
                x.t_()
            y = x.contiguous() + 1
            return x * 2, y
    return M(), (T(3, 4).abs(),)


@case(kind="trace")
def one_row_of_a_batch():
    """The first row of an open number: its axis goes, and it is one part of two."""
    class M(nn.Module):
        def forward(self, x):
            row = x[:1]
            row.squeeze_(1)
            part, = x[0, :1].chunk(2, 0)
            return row, part, x[:1].squeeze()
    return M(), (T(2, 1, 5),)
