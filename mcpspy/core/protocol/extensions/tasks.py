"""The extension Tasks: results that come later. 2025-11-25 has another form of it, in its core."""

from mcpspy.core.protocol.extensions.extension import FINAL, ExtensionMethod, McpExtension

SOURCE = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md"

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/tasks",
    title="Tasks",
    state=FINAL,
    source=SOURCE,
    since="2026-07-28",
    methods=(
        ExtensionMethod("tasks/get", "client", "taskId", since="2026-07-28"),
        ExtensionMethod("tasks/update", "client", "taskId", since="2026-07-28"),
        ExtensionMethod("tasks/cancel", "client", "taskId", since="2026-07-28"),
        ExtensionMethod("notifications/tasks", "server", "taskId", since="2026-07-28"),
    ),
    client_declares=True,
    result_types=("task",),
    not_found=("tasks/get", "tasks/update", "tasks/cancel", "tasks/result"),
    shapes="""
Filter  tasks#task-status-notifications
  taskIds?  [string]

Task  tasks#tasks-1  DATA701
  ttlMs  integer 0..|null
  pollIntervalMs?  integer 0..
  - ttl
  - pollInterval

result task  tasks#task-creation  DATA701
  + Task
  - task

# The result of the only method that may begin a task, tools/call. Its blocks are checked in `tasks/get`.
TaskOutcome  tasks#task-status  DATA701
  content  any

TaskCall  tasks#task-status  DATA701
  content?  [Block]
  isError?  boolean

TaskError  tasks#task-execution-errors  DATA701
  code  integer
  message  string

EndedTask  tasks#task-status  DATA701
  + Task

InputTask  tasks#task-status  DATA701
  + Task
  inputRequests  object  DATA701

CompletedTask  tasks#task-status  DATA701
  + Task
  result  TaskOutcome  DATA701

FailedTask  tasks#task-status  DATA701
  + Task
  error  TaskError  DATA701

DetailedTask by status  tasks#task-status  DATA701
  working  EndedTask
  input_required  InputTask
  completed  CompletedTask
  failed  FailedTask
  cancelled  EndedTask

result tasks/get  tasks#response  DATA701
  - *
  + result
  + DetailedTask
  inputRequests?  {InputRequest}
  result?  TaskCall  DATA701

request tasks/update  tasks#request-1
  + TaskId
  inputResponses  {InputResponse}

result tasks/update  tasks#response-1
  + result

result tasks/cancel  tasks#response-2
  - *
  + result

notification notifications/tasks  tasks#task-status-notifications  DATA701
  + notification
  + DetailedTask
""",
)
