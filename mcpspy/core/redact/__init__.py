"""Secrets: prefilter, JSON walker, token patterns, placeholders.

Theory of operation. `Redactor` turns lines of a recording into lines without secrets, in four stages. Each narrows down
what the next one has to read, and calls only downwards: redactor → walker → text → connectors, places, encoded, patterns.

1. Lines (`redactor`). `prefilter` searches whole chunks for literals; a chunk without one is returned as it is, which is
   the case for nearly all traffic. At each hit, `text.is_suspect` looks at a few bytes around it, because names such as
   `token` are common and parsing a message for each would be slow. Only the lines of suspects are read.
   It may assume whole lines of the recording, and nothing about their content.
2. Message (`walker`, by the tables of `members`). The payload of a line (a message, a raw line, Base64) is walked as
   JSON. The walker knows the member of each string, what the protocol needs, and which object an item belongs to, so
   that it recognises a secret whose name is elsewhere: above it, beside it, or in the item before. It may assume that
   the prefilter marked each string with a literal. A string that is JSON is walked the same way, up to four levels
   deep; of a text with JSON in it, the JSON is. `private_keys` sees a line first, since no single line of a stream
   contains a whole key.
3. Text (`text`). What is left is a text without structure. The rule of each hit returns spans: `patterns` for tokens,
   `connectors` for the value of a name, `places` for secrets without a name, `encoded` for Base64. A text is searched as
   it is, unescaped, and without its percent-encoding. It may assume nothing but bytes: they may be no UTF-8, and may
   break off anywhere.
4. Placeholders (`placeholder`). Spans become edits of the original bytes, so everything else in a line stays byte for byte.

Why nothing is missed. Whatever a rule recognises contains a literal: the tables of `names` and docs/token_formats.toml
make both the literals of stage 1 and the rules of stages 2 and 3, and a test searches each example with both. A secret
whose own bytes have no literal (the value of a pair, the answer to a form) is in a line with one, that of its name; the
one exception, the answer to a form that an earlier line had asked, is searched for by the names of its fields. What may
hide a literal is a literal: an escape of JSON, Base64 of a line, percent-encoding in a URL, the Base64 of common words.
`is_suspect` may only return False for what stages 2 and 3 would not redact either.

What it costs. Stage 1 takes a microsecond per message and does not depend on the number of literals: one DFA finds them
all, after an NFA for the first messages. Stages 2 and 3 take 50 to 100 microseconds per message, and are linear in its size: each pattern is matched at its
literal, reads a bounded number of bytes before it, and no two matches of one begin in the same run of letters. Text in
text is read a bounded number of times.

Command lines and URLs (`command_line`, `url`) have more structure than text, and add their rules to those of stage 3.
"""
