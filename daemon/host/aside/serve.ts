/** Work of the aside thread: one task after another. */
import { serveThread } from "../../core/threads/serve.ts";
import type { AnyTask, Task } from "./task.ts";

/** Answers the messages of the event loop from now on. */
export function serveTasks(tasks: readonly AnyTask[]): void {
  const byName = new Map(tasks.map((task) => [task.name, task as Task<unknown, unknown>]));
  serveThread(() => ({
    start: (name, input) => {
      const task = byName.get(name);
      if (!task) throw new Error(`${name} is no task`);
      return {
        next: () => {
          const value = task.run(input);
          return { value, isLast: true, transfer: task.buffersOf?.(value) ?? [] };
        },
        end: () => {},
      };
    },
    close: () => {},
  }));
}
