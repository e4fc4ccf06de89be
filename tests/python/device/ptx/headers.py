"""The headers of kernel texts, read from the tree as the build embeds them (cmake/embed_kernel_texts.cmake)."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[4] / "src"
_HIGHWAY = ("/usr/include", "/usr/local/include")

# Headers with another name in a text than in the tree: NVRTC has no standard library and no Highway.
_ALIASES = {
    **dict.fromkeys(
        ("cmath", "limits", "type_traits", "cstdint", "cstring", "utility", "algorithm", "cstddef"),
        "kernels/device/standard.h",
    ),
    "hwy/highway.h": "kernels/device/one_lane.h",
    "hybridnet/kernel.h": "kernels/device/random_key.h",
}


def _single_headers() -> list[str]:
    """The headers outside of the folders, as the build lists them."""
    script = (SOURCE.parent / "cmake" / "embed_kernel_texts.cmake").read_text()
    return re.search(r"list\(APPEND headers ([^)]*)\)", script)[1].split()


def kernel_headers() -> dict[str, str]:
    """Names as in ``#include`` to texts, for nvrtc.compile()."""
    texts = {}
    for pattern in ("kernels/device/*.cuh", "kernels/device/*.h", "kernels/functors/*.h", *_single_headers()):
        for path in sorted(SOURCE.glob(pattern)):
            texts[str(path.relative_to(SOURCE))] = path.read_text()
    texts.update({name: texts[target] for name, target in _ALIASES.items() if target in texts})
    for math in (Path(root) / "hwy/contrib/math/math-inl.h" for root in _HIGHWAY):
        if math.exists():
            texts["hwy/contrib/math/math-inl.h"] = math.read_text()
            break
    return texts


def write_for_gxx(folder: Path) -> None:
    """Writes those headers that g++ must not take from its own folders: all but the standard library's."""
    for name, text in kernel_headers().items():
        if "/" in name:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
