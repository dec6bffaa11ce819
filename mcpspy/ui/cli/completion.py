"""`mcpspy completion`: what a shell runs to complete our command lines.

Owns nothing but the choice of a shell: the code is argcomplete's, what can
stand where is `ui.cli.completing`'s.
"""

from __future__ import annotations

import argparse
import sys

EPILOG = """\
examples:
  eval "$(mcpspy completion bash)"                                    in ~/.bashrc
  eval "$(mcpspy completion zsh)"                                     in ~/.zshrc, after compinit
  mcpspy completion fish > ~/.config/fish/completions/mcpspy.fish     once
"""

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def main(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["mcpspy"], shell=args.shell))
    return 0
