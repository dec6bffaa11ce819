"""The extension Skills: instructions for agents, served as resources."""

from mcpspy.core.protocol.extensions.extension import (
    FINAL,
    ExtensionListing,
    ExtensionMethod,
    McpExtension,
)

SOURCE = "https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx"

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/skills",
    title="Skills",
    state=FINAL,
    source=SOURCE,
    since="2026-07-28",
    methods=(
        ExtensionMethod("skills/list", "client", "cursor"),
        ExtensionMethod("skills/get", "client", "uri"),
        ExtensionMethod("resources/directory/read", "client", "uri", setting="directoryRead"),
    ),
    listings=(ExtensionListing("skills/list", "skills", "uri", "skill", for_model="frontmatter"),),
    meta=("io.modelcontextprotocol.skills/",),
    not_found=("skills/get", "resources/directory/read"),
    shapes=r"""
digest = /^sha256:[0-9a-f]{64}$/ EXT301 "sha256: and 64 lower-case hexadecimal digits"
dynamic = /^dynamic$/ EXT301 "a list or the text dynamic"

ServerExtensions  skills#capability-negotiation
  io.modelcontextprotocol/skills?  SkillServer

SkillServer  skills#capability-negotiation  EXT103
  directoryRead?  boolean

Frontmatter  skills#frontmatter  EXT301
  name description  string
  license? compatibility?  string
  metadata?  object

SkillFile  skills#skill-entries  EXT301
  uri  string
  digest  digest
  size  integer 0..

Skill  skills#skill-entries  EXT301
  uri  string
  frontmatter  Frontmatter
  resources  [SkillFile]|dynamic

request skills/list  skills#listing-skills
  + Page

result skills/list  skills#listing-skills
  + PageResult
  skills  [Skill]

request skills/get  skills#getting-a-skill
  + request
  uri  string

result skills/get  skills#getting-a-skill
  + result
  + Cached
  skill  Skill

DirectoryPage  skills#reading-directories
  + result
  nextCursor?  string  DATA503

request resources/directory/read  skills#reading-directories
  + Page
  uri  string

result resources/directory/read  skills#reading-directories
  + DirectoryPage
  resources  [Resource]
""",
)
