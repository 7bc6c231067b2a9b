"""Keys in the formats of vendors: a prefix of their own and a long run of random characters.

All are found in one search for long runs, however many formats there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.secret_shapes.probe import Probe, Secret
from proxy.secret_shapes.values import is_random

_LONG = 16  # characters of a run that can hold a key
_RUNS = bytes(0x78 if chr(code).isalnum() or code in b"-_" else 0x20 for code in range(128)) + b" " * 128
_NEEDLE = b"x" * _LONG

# kind → formats that say enough by themselves
_FORMATS = {
    "github_token": (r"gh[pousr]_[A-Za-z0-9]{20,255}", r"github_pat_[A-Za-z0-9_]{20,255}"),
    "gitlab_token": (r"gl(?:pat|rt|dt|ptt|ft|soat|cbt|oas)-[A-Za-z0-9_.-]{16,255}",),
    "atlassian_token": (r"ATATT3[A-Za-z0-9_=-]{40,400}", r"AT(?:BB|CTT3)[A-Za-z0-9_=-]{24,300}"),
    "slack_token": (r"xox[abeprs]-[A-Za-z0-9-]{10,255}", r"xapp-[0-9]-[A-Za-z0-9-]{16,255}"),
    "aws_key": (r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",),
    "google_key": (r"AIza[A-Za-z0-9_-]{35}", r"GOCSPX-[A-Za-z0-9_-]{20,60}"),
    "google_token": (r"ya29\.[A-Za-z0-9_-]{20,2000}",),
    "npm_token": (r"npm_[A-Za-z0-9]{30,100}",),
    "huggingface_token": (r"hf_[A-Za-z0-9]{20,100}",),
    "sendgrid_key": (r"SG\.[A-Za-z0-9_-]{16,100}\.[A-Za-z0-9_-]{16,100}",),
    "stripe_key": (r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}", r"whsec_[A-Za-z0-9+/=]{16,255}"),
    "twilio_key": (r"SK[0-9a-f]{32}(?![A-Za-z0-9])",),
    "vault_token": (r"hv[sbr]\.[A-Za-z0-9_-]{20,300}",),
    "terraform_token": (r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,120}",),
    "doppler_token": (r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,100}",),
    "airtable_token": (r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",),
    "discord_token": (r"[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",),
    "facebook_token": (r"EAA[A-Za-z0-9]{80,400}",),
    "mailgun_key": (r"key-[0-9a-f]{32}(?![A-Za-z0-9])",),
    "mailchimp_key": (r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",),
    "age_key": (r"AGE-SECRET-KEY-1[A-Z0-9]{40,70}",),
    "wallet_key": (r"[xyz]prv[A-Za-z0-9]{100,112}",),
    "fly_token": (r"fm[12]_[A-Za-z0-9+/=_-]{40,2000}",),
    "jwt": (r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+(?:\.[A-Za-z0-9_-]{8,2000})?",),
    # A short prefix, then what must look random to count.
    "api_key": (
        (
            r"(?:sk|rk|sk_[a-z]{2,8}|xai|pplx|nvapi|tvly|pul|PMAK|NRAK|HRKU|xkeysib|lsv2_(?:pt|sk)|sq0[a-z]{3}|pypi)"
            r"[-_][A-Za-z0-9_-]{12,400}"
        ),
        (
            r"(?:gsk|r8|fw|pcsk|dop_v1|doo_v1|nfp|sbp|npg|pscale_(?:tkn|pw|oauth)|lin_api|lin_oauth|ntn|secret|figd|figo"
            r"|shp(?:at|ca|pa|ss)|glsa|glc|sntry[su]|rubygems|dckr_(?:pat|oat)|dsa|phc|phx|dt0c01|vercel|cfut|ops)"
            r"_[A-Za-z0-9_+/=-]{12,400}"
        ),
        r"(?:dapi|cio)[A-Za-z0-9]{32}(?![A-Za-z0-9])",
    ),
}
_KEY = re.compile("|".join(f"(?P<{kind}>{'|'.join(formats)})" for kind, formats in _FORMATS.items()))
# formats whose first long run stands behind a dot
_BEFORE_DOT = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))(?:SG|ya29|hv[sbr]|dp\.[a-z]{2,5}|[A-Za-z0-9]{14}\.atlasv1)\.\Z"
)
_TELEGRAM = re.compile(r"AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")


# what the formats begin with: most long runs (numbers of requests, names in programs) needn't be looked at again
_OPENINGS = frozenset(
    (
        b"sk rk xa pp nv tv pu PM NR HR xk ls sq py gs r8 fw pc do nf sb np ps li nt se fi sh gl sn ru dc ds ph dt ve"
        b" gi cf op da ci gh AT xo AK AS AI GO ya hf SG wh SK hv dp pa EA ke AG xp yp zp fm ey"
    ).split()
)


def vendor_keys(probe: Probe) -> Iterator[Secret]:
    """Gives the keys whose format says whose they are."""
    text, plain = probe.text, probe.plain
    runs = plain.translate(_RUNS)
    end = 0
    while (at := runs.find(_NEEDLE, end)) >= 0:
        end = runs.find(b" ", at)
        end = end if end >= 0 else len(runs)
        if plain[at : at + 2] in _OPENINGS or plain[at - 1] in _BEFORE or _odd(plain, end):
            key = _key(text, at)
            if key:
                yield key
                end = max(end, key.end)


def _odd(plain: bytes, end: int) -> bool:
    """Whether a run ends as keys do that begin with anything: Discord's go on behind a dot, Mailchimp's end so."""
    return plain[end : end + 1] == b"." or plain.find(b"-us", end - 5, end) >= 0


def _key(text: str, at: int) -> Secret | None:
    start = _beginning(text, at) if at else at
    match = _KEY.match(text, start)
    if match and _convincing(match):
        return Secret(match.start(), match.end(), match.lastgroup or "api_key", match[0])
    return _telegram(text, start) if text.startswith(":AA", start - 1) else None


_BEFORE = b"\\%.:"


def _beginning(text: str, at: int) -> int:
    """Gives where the word begins to which a long run belongs."""
    before = text[at - 1]
    if before == "\\" and text[at] in "nrtbf":  # the letter of an escaped line break
        return at + 1
    if before == "%":  # %3D of a URL
        return at + 2
    if before == ".":
        found = _BEFORE_DOT.search(text, max(0, at - 26), at)
        return found.start() if found else at
    return at


def _convincing(match: re.Match[str]) -> bool:
    value = match[0]
    if match.lastgroup == "api_key":
        return is_random(value[3:])
    return len(set(value)) >= 6  # not ghp_xxxxxxxx


def _telegram(text: str, at: int) -> Secret | None:
    match = _TELEGRAM.match(text, at)
    known = match is not None and at > 1 and text[at - 2].isdigit()
    return Secret(at, match.end(), "telegram_token", match[0]) if match and known else None
