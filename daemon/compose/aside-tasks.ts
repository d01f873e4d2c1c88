/** All tasks of the aside thread. */
import { templateTasks } from "../domain/templates/tasks.ts";
import type { AnyTask } from "../host/aside/task.ts";

export const TASKS: readonly AnyTask[] = [...templateTasks];
