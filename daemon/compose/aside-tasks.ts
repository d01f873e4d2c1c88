/** List of all tasks of the aside thread. */
import { templateTasks } from "../domain/templates/tasks.ts";
import { mcpTasks } from "../edge/mcp/tasks.ts";
import { edgeTasks } from "../edge/pipeline/tasks.ts";
import type { AnyTask } from "../host/aside/task.ts";

export const TASKS: readonly AnyTask[] = [...edgeTasks, ...mcpTasks, ...templateTasks];
