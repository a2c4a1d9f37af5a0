"""What secrets look like: keys of well-known vendors, PEM, JWT, `password=`."""
# ruff: noqa: RUF001 - signs of other scripts

import re

_SHAPES = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a signed token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "an access key": (
        r"\b(?:sk-(?:proj-|ant-|or-)?[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}"
        r"|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[\w-]{30,}"
        r"|[rs]k_(?:live|test)_\w{16,}|hf_[A-Za-z]{20,}|npm_\w{30,}|pypi-[\w-]{30,}"
        r"|SG\.[\w-]{16,}\.[\w-]{16,})"
    ),
    "a password": (
        r"(?i:(?<![^\W_])(?:password|passwd|pwd|passphrase|api[_-]?key|secret[_-]?key|access[_-]?token"
        r"|auth[_-]?token|client[_-]?secret|passwort|kennwort|contraseña|senha|пароль"
        r"|mot de passe"  # codespell:ignore mot
        r"|密码|密碼|パスワード|비밀번호)[\"']?\s*[=:：]\s*[\"']?[^\s\"']{4,}"
        r"|(?<![^\W_])(?:password|passphrase)\s+is\s+[\"']?(?=\S*\d)[^\s\"']{4,})"
    ),
    "an address with a password": r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@",
    "an authorisation header": r"(?i:\bauthorization\s*[=:]\s*(?:bearer|basic)\s+\S{8,})",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _SHAPES.items()}


def secret_shape(text: str) -> str:
    """Return what kind of secret a text seems to hold, like `an access key`; empty for none."""
    return next((name for name, shape in _COMPILED.items() if shape.search(text)), "")


def redacted(text: str) -> str:
    """Return the text with every such secret replaced by `[removed: an access key]` or the like."""
    for name, shape in _COMPILED.items():
        text = shape.sub(f"[removed: {name}]", text)
    return text
