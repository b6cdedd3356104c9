"""Names that would be something else than data if anything read them."""

from hypothesis import strategies as st

CANARY = "pwned"
FRAGMENTS = (
    # terminals and their markup
    "[/queue]", "[kafka]", "[bold]", ":smile:", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m",
    "\u202e", "\u2066", "\u200b", "\x7f", "\ufeff",
    # ends of lines, in the eyes of one reader or another
    "\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\\\n",
    # separators, and what ends a text or a comment
    "\x1f", "\x1e", "\x00", "\t", ",", ";", "|", "'", '"', "'''", '"""', "`", "\\", "\\\\",
    "*/", "-->", "]]>", "//", "#", "---", "&lt;", "&#10;", "<!--", "%0A", "%", "%}",
    # templates
    "{0}", "{", "}}", "${x}", "$$", "$(", "%s", "$\\frac{$",
    # code
    "\\u000a", "\\u0022", "\\uuuu000a;", "\\u", "\\x0a", "\\N{BULLET}",
    "\\u000a } static { System.exit(3); } //", '" + System.exit(3) + "',
    f"'\n>{CANARY}\n'", f"$(>{CANARY})", f"`>{CANARY}`", f"; >{CANARY} #", f"esac; >{CANARY}",
    f'"""\nopen("{CANARY}", "w")\n"""', f"')\nopen('{CANARY}', 'w') #", "\n- injected: true\n",
    '"]; evil [label="', "\n[injected]\n", "'; DROP TABLE jobs; --", "esac", "null", "true", "1e5",
    # what spreadsheets compute
    "=1+1", "+1", "-1", "@SUM(A1)", "=cmd|'/C calc'!A1", "\t=1", " =1", "'=1", "＝1",
)  # fmt: skip
"""Texts that mean something to a terminal, to a language, or to a spreadsheet."""
MARKUP = (
    "</script><script>alert(1)</script>", "<script>", "</title>", "</style>", "<!-- <script>",
    "<img src=x onerror=alert(1)>", "&lt;script&gt;", "&", "<", ">", '"><svg onload=alert(1)>',
    "javascript:alert(1)", "</SCRIPT >", "<![CDATA[", " ", "\u200f",
    "{{7*7}}", "${7*7}", "__proto__", "constructor", "toString", "hasOwnProperty", "NaN", "\\",
    "\\u003c/script>", "'-alert(1)-'", "%3Cscript%3E", "x" * 100_000, "é", "日本", "🦄", "\u0301",
    "<style>*{display:none}</style>", "</main>", "</body>", "</html>", "<base href=//x>",
    "<a href=javascript:alert(1)>", "<object data=x>", "<embed src=//x>", "<svg/onload=alert(1)>",
    "<link rel=stylesheet href=//x>", "<math><mtext></script>", "]]></script>", "\ufffd",
    "<meta http-equiv=refresh content=0>", "<iframe srcdoc=x>", "onclick=alert(1)",
)  # fmt: skip
"""Names that mean something to a browser."""
HOSTILE = tuple(dict.fromkeys((*MARKUP, *FRAGMENTS)))
"""All of them, each once."""

names = st.lists(
    st.sampled_from(FRAGMENTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    min_size=1,
    max_size=4,
).map("".join).filter(bool)  # fmt: skip
