// Unpack the Chromium that @sparticuz/chromium holds (x86-64 Linux, with the libraries that a bare system lacks):
//
//     node chromium.mjs PACKAGE FOLDER
//
// It is unpacked here, once, rather than by the package when it is used: that would leave it in /tmp.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

const [from, to] = process.argv.slice(2);
const unpacked = (name) => brotliDecompressSync(readFileSync(join(from, "bin", name)));

rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
for (const name of ["al2023.tar.br", "fonts.tar.br"]) {
  execFileSync("tar", ["-x", "-C", to], { input: unpacked(name) });
}
const fonts = `<fontconfig><dir>${join(to, "fonts")}</dir><cachedir>${join(to, "cache")}</cachedir></fontconfig>\n`;
writeFileSync(join(to, "fonts.conf"), fonts); // Its own is for the place where it usually lives.
writeFileSync(join(to, "chromium"), unpacked("chromium.br"), { mode: 0o755 });
