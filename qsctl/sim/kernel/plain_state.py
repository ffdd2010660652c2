"""The state record of a model where kernels are plain Python."""

from __future__ import annotations

from typing import Any


class PlainState:
    """The fields of the state record as attributes: arrays in place of their addresses, and numbers."""

    def __init__(self, numbers: Any, arrays: dict[str, Any]) -> None:
        vars(self).update(_numbers=numbers, _arrays=arrays)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> PlainState:
        return self

    def __getattr__(self, name: str) -> Any:
        return self._arrays[name] if name in self._arrays else self._numbers[name].item()

    def __setattr__(self, name: str, value: float) -> None:
        self._numbers[name] = value
