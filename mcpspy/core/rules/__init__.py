"""Rules: `when <query> do delay, drop, error, replace …`, from TOML or a flag.

`model` is the rule, `parser` reads rules from files and flags, `template` and `edit` implement actions.
`core.intercept` evaluates them.
"""
