# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stand-in with the interface of PyTorch that the examples use: PyTorch is not in Debian. It
checks that a lease was applied before the import."""

import os
from typing import Any

assert os.environ['HSA_CU_MASK'], 'torch was imported before the lease was applied'


class Tensor:
    def __init__(self, rows: int, columns: int) -> None:
        self.shape = rows, columns

    def __matmul__(self, other: 'Tensor') -> 'Tensor':
        assert self.shape[1] == other.shape[0]
        return Tensor(self.shape[0], other.shape[1])


def randn(rows: int, columns: int, device: str) -> Tensor:
    assert device == 'cuda'
    return Tensor(rows, columns)


class cuda:
    @staticmethod
    def synchronize(*_: Any) -> None:
        pass
